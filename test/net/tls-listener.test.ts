/** A runner's listener that closes is not held up by who has just come. */
import { connect as connectPlain } from "node:net"
import { Duplex } from "node:stream"
import { connect } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import * as TlsListener from "@svc/cluster/net/TlsListener"
import { Effect, Exit, Scope } from "effect"
import { expect, it } from "vitest"

it("ends though a handshake is completed while it closes, by a client that then stays", async () => {
  const pem = selfSigned(["runner.example.org"], new Date())
  const scope = Scope.makeUnsafe()
  const { address } = await Effect.runPromise(
    Scope.provide(TlsListener.make({ ...pem, host: "127.0.0.1", port: 0 }), scope),
  )
  if (address._tag === "UnixPathAddress") throw new Error("it listens on a port")
  const plain = connectPlain({ host: "127.0.0.1", port: address.port })
  // The client's first flight goes at once; the next is held back.
  const held: Array<() => void> = []
  let flights = 0
  let holds = () => {}
  const isHeld = new Promise<void>((resolve) => (holds = resolve))
  const slow = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      const pass = () => plain.write(chunk, done)
      if (flights++ === 0) return pass()
      held.push(pass)
      holds()
    },
  })
  plain.on("data", (chunk: Buffer) => slow.push(chunk))
  const client = connect({ socket: slow, rejectUnauthorized: false, maxVersion: "TLSv1.2" }).on("error", () => {})
  await isHeld
  let ended = false
  const closing = Effect.runPromise(Scope.close(scope, Exit.void)).then(() => (ended = true))
  // Only now, as the listener takes nobody any more, is the handshake completed.
  await expect(
    new Promise((_, reject) => connectPlain({ host: "127.0.0.1", port: address.port }).once("error", reject)),
  ).rejects.toThrow(/ECONN(REFUSED|RESET)/)
  for (const pass of held) pass()
  await new Promise((resolve) => client.once("secureConnect", resolve))
  await closing
  expect(ended).toBe(true)
  plain.destroy()
  client.destroy()
})
