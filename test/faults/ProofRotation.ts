/**
 * Rotates the keys of an Identity and of the service while two processes sign requests and issue tokens. A verifier that
 * reads the directory after a request knows its key, and a verifier that keeps the key set of the service for a day knows
 * the key of every token.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { verifySignature, webcrypto } from "http-message-sig"
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, type JWK, jwtVerify } from "jose"
import { Timing } from "@svc/cluster/Timing"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process, until } from "../harness/Deployment.ts"
import { fetchPublic } from "../harness/Public.ts"
import { freePort } from "../harness/Ports.ts"
import type { Row } from "../harness/Report.ts"
import { inStore } from "./Store.ts"

const rotations = Number(process.env["FAULTS_TIMES"] ?? 100)
const url = "https://shop.example/"
const directoryPath = "/.well-known/http-message-signatures-directory"

/** Verifies a signed request with the directory. Throws if the directory lacks the key. */
const verifyRequest = (headers: Readonly<Record<string, string>>, keys: ReadonlyArray<JWK>) =>
  verifySignature(
    {
      kind: "request",
      method: "GET",
      targetUri: url,
      fields: Object.entries(headers).map(([name, value]) => ({ name, value })),
    },
    {
      policy: {
        algorithms: ["ed25519"],
        requiredComponents: ["@authority"],
        requiredParameters: ["keyid"],
        maxAge: 60,
      },
      resolveVerifier: async ({ parameters: { keyid } }) => {
        const jwk = keys.find(({ kid }) => kid === keyid)
        if (jwk === undefined) throw new Error("unknown key")
        return webcrypto.verifier(await crypto.subtle.importKey("jwk", jwk as never, "Ed25519", false, ["verify"]))
      },
    },
  )

/** Seconds within which a process reads its issuer keys again. */
const reloadSeconds = Timing.issuerReloadMillis / 1000

const keySetOf = async (base: string) =>
  (await call(base, "GET", "/.well-known/jwks.json")).body as unknown as JSONWebKeySet

const svc = new URL("../../packages/cli/src/main.mjs", import.meta.url).pathname

interface Issuing {
  readonly deployment: Deployment
  /** The processes, which have the same issuer. */
  readonly bases: readonly [string, string]
  readonly issuer: string
  /** Issues a token at a process; undefined if the process cannot. */
  readonly issue: (base: string) => Promise<string | undefined>
}

/**
 * Rotates the keys of the service with `svc issuer rotate`, and ends the day that new keys wait. Each token is verified
 * with the key set of the other process, and with one that was read before the rotation, then before the end of the day.
 */
const rotateIssuer = async ({ deployment, bases, issuer, issue }: Issuing) => {
  const [first, second] = bases
  let isRunning = true
  let held = await keySetOf(second)
  const tokens = { made: 0, refused: 0 }
  const kids = new Map<string, string>()
  const former: Array<string> = []
  const verify = (token: string, keys: JSONWebKeySet) =>
    jwtVerify(token, createLocalJWKSet(keys)).catch(() => tokens.refused++)
  const loops = bases.map(async (base, at) => {
    while (isRunning) {
      // A verifier that keeps key sets has this one when the token is issued.
      const keys = held
      const token = await issue(base)
      if (token === undefined) continue
      tokens.made++
      kids.set(base, decodeProtectedHeader(token).kid!)
      await verify(token, keys)
      await verify(token, await keySetOf(bases[1 - at]!))
      former[at] = token
    }
  })
  try {
    await until("tokens are issued", () => kids.size === 2, 60)
    const before = kids.get(first)
    await promisify(execFile)(process.execPath, [svc, "issuer", "rotate"], {
      env: { PATH: process.env["PATH"], SVC_DATA_DIR: deployment.directory, SVC_BASE_URL: issuer },
    })
    const rotatedAt = performance.now()
    const isPublished = async (base: string) => (await keySetOf(base)).keys.length === 4
    await until(
      "both processes publish the new keys and have read their keys again",
      async () =>
        performance.now() > rotatedAt + Timing.issuerReloadMillis && (await isPublished(first)) && isPublished(second),
      3 * reloadSeconds,
    )
    const signedEarly = bases.filter((base) => kids.get(base) !== before).length
    held = await keySetOf(first)
    const last = [...former]
    await inStore(deployment, "update issuer_key set signs_from = now() where signs_from > now()")
    await until(
      "both processes sign with the new key",
      () => bases.every((base) => kids.get(base) !== before),
      3 * reloadSeconds,
    )
    // A token that the former key signed stays valid until it expires.
    for (const token of last) for (const base of bases) await verify(token, await keySetOf(base))
    return { ...tokens, signedEarly }
  } finally {
    isRunning = false
    await Promise.all(loops)
  }
}

export const proofRotation = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const issuer = `http://localhost:${await freePort()}`
    const processes: ReadonlyArray<Process> = [
      await deployment.start(["actors", "api", "edge"], { SVC_BASE_URL: issuer }),
      await deployment.start(["api"], { SVC_BASE_URL: issuer }),
    ]
    const [first, second] = processes.map(({ base }) => base)
    const { edgePort } = processes[0]!
    const { session } = await signUp(first!)
    const { handle } = await makeIdentity(first!, session)
    const path = `/api/identities/${handle}`
    let isRunning = true
    const requests = { made: 0, refused: 0 }

    const signing = Array.from({ length: 4 }, async (_, at) => {
      const base = at % 2 === 0 ? first! : second!
      while (isRunning) {
        const { status, body } = await call(base, "POST", `${path}/signatures`, {
          token: session,
          body: { method: "GET", url },
        })
        if (status !== 201) continue
        const { status: read, body: text } = await fetchPublic(edgePort, handle, directoryPath)
        if (read !== 200) continue
        requests.made++
        await verifyRequest(body.headers, JSON.parse(text).keys).catch(() => requests.refused++)
      }
    })
    const issue = async (base: string): Promise<string | undefined> =>
      (
        await call(base, "POST", `${path}/tokens`, {
          token: session,
          body: { audience: "api.example", algorithm: "ES256" },
        })
      ).body.token
    const issuing = rotateIssuer({ deployment, bases: [first!, second!], issuer, issue })
    // Awaited below; a failure must not end the process before.
    issuing.catch(() => {})
    try {
      for (let n = 0; n < rotations; n++) {
        const seen = requests.made
        await until(
          "the rotation",
          async () => (await call(first!, "POST", `${path}/signing-key/rotate`, { token: session })).status === 200,
          30,
        )
        await until("requests are signed", async () => requests.made > seen + 2, 30)
      }
      await issuing
    } finally {
      isRunning = false
      await Promise.allSettled([...signing, issuing])
    }
    const tokens = await issuing
    return {
      id: "proof-rotation",
      ok: requests.refused === 0 && tokens.refused + tokens.signedEarly === 0 && requests.made > rotations,
      what: `${rotations} rotations of an Identity's key, and one of the service's, while two processes sign requests and issue tokens`,
      figures: {
        "requests verified": requests.made,
        "with an unknown key": requests.refused,
        "tokens verified": tokens.made,
        "refusals of tokens": tokens.refused,
      },
    }
  } finally {
    await deployment.stop()
  }
}
