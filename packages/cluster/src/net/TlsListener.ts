/**
 * The library's TLS listener, whose end is bounded. A connection whose handshake is completed while the listener closes
 * belongs to nobody: the library neither hands it on nor ends it, and waits for it to go, which it may never do.
 */
import type { ListenOptions } from "node:net"
import type { TlsOptions } from "node:tls"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, Fiber, Scope } from "effect"
import { Timing } from "../Timing.ts"

/** Whether the peer broke the connection off, as one does that is killed. The library would log that as an error. */
const isReset = (error: unknown): boolean => {
  for (let cause = error, depth = 0; typeof cause === "object" && cause !== null && depth < 5; depth++) {
    if ("code" in cause && (cause.code === "ECONNRESET" || cause.code === "EPIPE")) return true
    cause = "reason" in cause ? cause.reason : "cause" in cause ? cause.cause : undefined
  }
  return false
}

/** Listens until the scope closes, and then ends what it has for at most `runnerClose`. */
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
