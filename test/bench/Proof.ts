/**
 * The cost of proofs: an identity token compared with a whoami call, and a verified signed request through the tunnel
 * compared with an unsigned one. Each signed request has a signature of its own, made before its slice, because an edge
 * refuses copies.
 */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto"
import { createServer } from "node:http"
import { connect, type AddressInfo } from "node:net"
import { calculateJwkThumbprint, exportJWK } from "jose"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { fetchPublic, hostOf } from "../harness/Public.ts"
import { round, type Row } from "../harness/Report.ts"
import * as Load from "./Load.ts"
import * as References from "./TunnelReferences.ts"
import { drift, figuresOf, inTurn } from "./Turns.ts"

const width = 16
/** Signatures that are made before each slice. */
const signatures = 4_000

/** An agent elsewhere: its key, and the directory at its origin. */
const startAgent = async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(jwk)
  const server = createServer((_, response) => {
    response.setHeader("content-type", "application/http-message-signatures-directory+json")
    response.setHeader("cache-control", "max-age=3600").end(JSON.stringify({ keys: [{ ...jwk, kid }] }))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const origin = `"http://127.0.0.1:${(server.address() as AddressInfo).port}"`
  const covered = '("@authority" "@method" "@path" "signature-agent";key="sig1")'
  return {
    /** Returns the fields of a signed request. Written here, because the library takes longer than the signature. */
    fields: (host: string) => {
      const created = Math.floor(Date.now() / 1000)
      const nonce = randomBytes(64).toString("base64")
      const input = `${covered};created=${created};expires=${created + 60};keyid="${kid}";alg="ed25519";nonce="${nonce}";tag="web-bot-auth"`
      const base = `"@authority": ${host}\n"@method": GET\n"@path": /\n"signature-agent";key="sig1": ${origin}\n"@signature-params": ${input}`
      const signature = sign(null, Buffer.from(base), privateKey).toString("base64")
      return `Signature-Agent: sig1=${origin}\r\nSignature-Input: sig1=${input}\r\nSignature: sig1=:${signature}:\r\n`
    },
    stop: () => server.close(),
  }
}

/** A connection to the edge with one request in flight. */
const open = (port: number) => {
  const socket = connect(port, "127.0.0.1").setNoDelay(true).setEncoding("latin1")
  let done = () => {}
  let failed: (error: Error) => void = () => {}
  let text = ""
  socket.on("data", (chunk: string) => {
    text += chunk
    const end = text.indexOf("\r\n\r\n")
    if (end < 0 || text.length < end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)) return
    if (text.startsWith("HTTP/1.1 200")) done()
    else failed(new Error(text))
    text = ""
  })
  socket.on("error", (error) => failed(error))
  return {
    ask: (head: string) =>
      new Promise<void>((resolve, reject) => {
        done = resolve
        failed = reject
        socket.write(head)
      }),
    close: () => socket.destroy(),
  }
}

/** Drives requests over new connections. `fieldsOf` returns further fields of a request. */
const requester =
  (port: number, host: string, fieldsOf: () => string): Load.Drive =>
  async (seconds) => {
    const connections = Array.from({ length: width }, () => open(port))
    try {
      return await Load.work(width, (worker) =>
        connections[worker]!.ask(`GET / HTTP/1.1\r\nHost: ${host}\r\n${fieldsOf()}\r\n`),
      )(seconds)
    } finally {
      for (const { close } of connections) close()
    }
  }

/** Makes sure that the edge verifies these requests: it admits them while the Tunnel requires a signature. */
const isVerified = async (base: string, token: string, handle: string, drive: () => Promise<unknown>) => {
  const path = `/api/identities/${handle}/tunnel`
  const admit = (callers: string) => call(base, "PATCH", path, { token, body: { callers } })
  await admit("signed")
  await drive()
  await admit("anyone")
}

/** Measures the CPU time of one ES256 signature in microseconds. */
const signatureMicros = () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const data = randomBytes(500)
  const count = 2_000
  const before = process.cpuUsage()
  for (let n = 0; n < count; n++) sign("sha256", data, privateKey)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

export const proof = async (): Promise<Row> => {
  const deployment = await deploy()
  const origin = await References.startOrigin(0)
  const agent = await startAgent()
  try {
    const env = { SVC_LIMIT_TUNNEL_TRANSFER: String(2 ** 50) }
    const [api, edge] = [await deployment.start(["api", "actors"], env), await deployment.start(["edge"], env)]
    const { session } = await signUp(api.base)
    const { handle, secrets } = await makeIdentity(api.base, session)
    const link = await References.svcTunnel(api.base, `http://connect.tunnel.localhost:${edge.edgePort}`, origin.port, {
      SVC_KEY: secrets.identity_key,
    })
    try {
      await until("the tunnel", async () => (await fetchPublic(edge.edgePort, handle, "/")).status === 200)
      const host = `${hostOf(handle)}:${edge.edgePort}`
      const signed: Array<string> = []
      const fields = () => agent.fields(host)
      await isVerified(api.base, session, handle, () => requester(edge.edgePort, host, fields)(0.01))
      const requests = await inTurn({
        unsigned: { drive: requester(edge.edgePort, host, () => ""), pid: edge.child.pid! },
        signed: {
          prepare: async () => {
            signed.length = 0
            for (let n = 0; n < signatures; n++) signed.push(fields())
          },
          drive: requester(edge.edgePort, host, () => signed.pop() ?? fields()),
          pid: edge.child.pid!,
        },
      })
      const port = Number(new URL(api.base).port)
      const headers = { authorization: `Bearer ${session}` }
      const calls = await inTurn({
        whoami: {
          drive: Load.http(port, { method: "GET", path: "/api/auth/whoami", headers }, width),
          pid: api.child.pid!,
        },
        token: {
          drive: Load.http(
            port,
            {
              method: "POST",
              path: `/api/identities/${handle}/tokens`,
              headers: { ...headers, "content-type": "application/json" },
              body: JSON.stringify({ audience: "api.example", algorithm: "ES256" }),
            },
            width,
          ),
          pid: api.child.pid!,
        },
      })
      const signature = signatureMicros()
      const [cpu, of] = [requests.signed.cpu, calls.token.cpu]
      return {
        id: "proof",
        ok: requests.signed.wrong + calls.token.wrong === 0,
        what: `a verified signed request through the tunnel compared with an unsigned one, and a token (ES256) compared with whoami: ${width} connections`,
        unreliable: drift({ cpu: { "unsigned requests": requests.unsigned, whoami: calls.whoami } }),
        goals:
          cpu === undefined || of === undefined
            ? []
            : [
                {
                  what: "CPU us that a signature adds at the edge",
                  value: Math.round(cpu.least - requests.unsigned.cpu!.least),
                  atMost: 150,
                },
                {
                  what: "CPU of a token without its signature to whoami",
                  value: round((of.least - signature) / calls.whoami.cpu!.least),
                  atMost: 1,
                },
              ],
        figures: {
          ...figuresOf("unsigned", requests.unsigned),
          ...figuresOf("signed", requests.signed),
          ...figuresOf("whoami", calls.whoami),
          ...figuresOf("token", calls.token),
          "signature CPU us": Math.round(signature),
        },
      }
    } finally {
      link.kill()
    }
  } finally {
    agent.stop()
    origin.stop()
    await deployment.stop()
  }
}
