/**
 * Rotates the keys of an Identity and of the service while two processes sign requests and issue tokens. A verifier that
 * reads the published keys afterwards knows every key that it meets.
 */
import { verifySignature, webcrypto } from "http-message-sig"
import { createLocalJWKSet, type JSONWebKeySet, type JWK, jwtVerify } from "jose"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { fetchPublic } from "../harness/Public.ts"
import type { Row } from "../harness/Report.ts"

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

export const proofRotation = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const processes: ReadonlyArray<Process> = [
      await deployment.start(["actors", "api", "edge"]),
      await deployment.start(["api"]),
    ]
    const [first, second] = processes.map(({ base }) => base)
    const { edgePort } = processes[0]!
    const { session } = await signUp(first!)
    const { handle } = await makeIdentity(first!, session)
    const path = `/api/identities/${handle}`
    let isRunning = true
    const requests = { made: 0, refused: 0 }
    const tokens = { made: 0, refused: 0 }

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
    const issuing = Array.from({ length: 2 }, async (_, at) => {
      const base = at % 2 === 0 ? first! : second!
      while (isRunning) {
        const { status, body } = await call(base, "POST", `${path}/tokens`, {
          token: session,
          body: { audience: "api.example", algorithm: "ES256" },
        })
        if (status !== 201) continue
        const keys = await call(base, "GET", "/.well-known/jwks.json")
        if (keys.status !== 200) continue
        tokens.made++
        await jwtVerify(body.token, createLocalJWKSet(keys.body as JSONWebKeySet)).catch(() => tokens.refused++)
      }
    })
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
      await until("tokens are issued", async () => tokens.made > 0, 30)
    } finally {
      isRunning = false
      await Promise.all([...signing, ...issuing])
    }
    return {
      id: "proof-rotation",
      ok: requests.refused === 0 && tokens.refused === 0 && requests.made > rotations && tokens.made > 0,
      what: `${rotations} rotations of an Identity's key while two processes sign requests and issue tokens`,
      figures: {
        "requests verified": requests.made,
        "with an unknown key": requests.refused,
        "tokens verified": tokens.made,
        "tokens refused": tokens.refused,
      },
    }
  } finally {
    await deployment.stop()
  }
}
