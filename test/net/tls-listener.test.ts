/** Closing a runner's listener does not wait for clients that have just connected. */
import { connect as connectPlain } from "node:net"
import { Duplex } from "node:stream"
import { connect } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import * as TlsListener from "@svc/cluster/net/TlsListener"
import { Cause, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { expect, it } from "vitest"

it("closes even if a client completes a handshake meanwhile and stays connected", async () => {
  const pem = selfSigned(["runner.example.org"], new Date())
  const scope = Scope.makeUnsafe()
  const { address } = await Effect.runPromise(
    Scope.provide(TlsListener.make({ ...pem, host: "127.0.0.1", port: 0 }), scope),
  )
  if (address._tag === "UnixPathAddress") throw new Error("it listens on a port")
  const plain = connectPlain({ host: "127.0.0.1", port: address.port })
  // The client's first flight is sent immediately; the next one is held back.
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
  // The handshake completes only now, when the listener no longer accepts connections.
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

it("does not log an error when a peer resets its connection", async () => {
  const pem = selfSigned(["runner.example.org"], new Date())
  const scope = Scope.makeUnsafe()
  const lines: Array<string> = []
  const logger = Logger.layer([
    Logger.make(
      ({ logLevel, message, cause }) => void lines.push(`${logLevel} ${String(message)} ${Cause.pretty(cause)}`),
    ),
  ])
  let onServed = () => {}
  const isServed = new Promise<void>((resolve) => (onServed = resolve))
  let ended = () => {}
  const isOver = new Promise<void>((resolve) => (ended = resolve))
  const server = await Effect.runPromise(Scope.provide(TlsListener.make({ ...pem, host: "127.0.0.1", port: 0 }), scope))
  if (server.address._tag === "UnixPathAddress") throw new Error("it listens on a port")
  const serving = Effect.runFork(
    Effect.provide(
      server.run((socket) =>
        Effect.gen(function* () {
          const { pull } = yield* socket.reader
          const { write } = yield* socket.writer
          yield* Effect.forkChild(Effect.ignore(write(new Uint8Array(1024 * 1024))))
          // Closing a connection resets it if the peer has not read all data.
          setTimeout(onServed, 50)
          return yield* Effect.forever(pull)
        }).pipe(Effect.scoped, Effect.ensuring(Effect.sync(ended))),
      ),
      logger,
    ),
  )
  const plain = connectPlain({ host: "127.0.0.1", port: server.address.port })
  const client = connect({ socket: plain, rejectUnauthorized: false }).on("error", () => {})
  await new Promise((resolve) => client.once("secureConnect", resolve))
  await isServed
  plain.resetAndDestroy()
  await isOver
  await Effect.runPromise(Effect.yieldNow)
  expect(lines).toEqual([])
  await Effect.runPromise(Fiber.interrupt(serving))
  await Effect.runPromise(Scope.close(scope, Exit.void))
})
