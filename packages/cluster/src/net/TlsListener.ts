/**
 * The library's TLS listener with a limit on the time to close. If a handshake completes while the listener closes, the
 * library neither delivers nor ends the connection, and may wait for it indefinitely.
 */
import type { ListenOptions } from "node:net"
import type { TlsOptions } from "node:tls"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, Fiber, Scope } from "effect"
import { Timing } from "../Timing.ts"

/** Returns whether the peer reset the connection, as a killed process does. The library would log an error. */
const isReset = (error: unknown): boolean => {
  for (let cause = error, depth = 0; typeof cause === "object" && cause !== null && depth < 5; depth++) {
    if ("code" in cause && (cause.code === "ECONNRESET" || cause.code === "EPIPE")) return true
    cause = "reason" in cause ? cause.reason : "cause" in cause ? cause.cause : undefined
  }
  return false
}

/** Listens until the scope closes, and then waits for open connections for at most `runnerClose`. */
export const make = Effect.fnUntraced(function* (options: TlsOptions & ListenOptions) {
  const own = yield* Scope.make()
  yield* Effect.addFinalizer((exit) =>
    Effect.gen(function* () {
      const closing = yield* Effect.forkDetach(Scope.close(own, exit))
      yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(closing)), Timing.runnerClose)
    }),
  )
  const server = yield* Scope.provide(NodeSocketServer.makeTls(options), own)
  const run: typeof server.run = (handler) =>
    server.run((socket) => Effect.catchIf(handler(socket), isReset, () => Effect.void))
  return { ...server, run }
})
