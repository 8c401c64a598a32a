import { createHmac } from "node:crypto"
import { connect as connectPlain } from "node:net"
import { connect } from "node:tls"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

const masterKey = Buffer.alloc(32, 7)
let service: OwnService
let port: number
beforeAll(async () => {
  service = await startService({ env: { SVC_MASTER_KEY: masterKey.toString("base64") } })
  const [runner] = await eventually(
    () => service.query<{ address: string }>((sql) => sql`select address from cluster_runners`),
    ([row]) => row !== undefined,
  )
  port = Number(/:(\d+)$/.exec(runner!.address)![1])
})
afterAll(() => service.stop())

/** Tries to connect to the runner and returns how the attempt ends. */
const trying = (key: Buffer, identity: string) =>
  new Promise<string>((resolve) => {
    const psk = createHmac("sha256", key)
      .update(JSON.stringify(["derived", "runner"]))
      .digest()
    const socket = connect({
      host: "127.0.0.1",
      port,
      ciphers: "PSK",
      maxVersion: "TLSv1.2",
      checkServerIdentity: () => undefined,
      pskCallback: () => ({ identity, psk }),
    })
    socket.once("secureConnect", () => (socket.destroy(), resolve("accepted")))
    socket.once("error", () => resolve("refused"))
    socket.once("close", () => resolve("refused"))
  })

describe("a runner's port", () => {
  it("accepts only peers that hold the master key", async () => {
    expect(await trying(masterKey, "0")).toBe("accepted")
    expect(await trying(Buffer.alloc(32, 8), "0")).toBe("refused")
    expect(await trying(masterKey, "1")).toBe("refused")
  })

  it("closes the connection of a peer without proof", async () => {
    const answered = await new Promise<string>((resolve) => {
      const socket = connectPlain({ host: "127.0.0.1", port })
      let text = ""
      socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
      socket.on("error", () => {})
      socket.once("close", () => resolve(text))
    })
    expect(answered).toBe("")
  })
})
