/**
 * The library's TLS listener, whose end is bounded. A connection whose handshake is completed while the listener closes
 * belongs to nobody: the library neither hands it on nor ends it, and waits for it to go, which it may never do.
 */
import type { ListenOptions } from "node:net"
import type { TlsOptions } from "node:tls"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, Fiber, Scope } from "effect"
import { Timing } from "../Timing.ts"

/** Listens until the scope closes, and then ends what it has for at most `runnerClose`. */
export const make = Effect.fnUntraced(function* (options: TlsOptions & ListenOptions) {
  const own = yield* Scope.make()
  yield* Effect.addFinalizer((exit) =>
    Effect.gen(function* () {
      const closing = yield* Effect.forkDetach(Scope.close(own, exit))
      yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(closing)), Timing.runnerClose)
    }),
  )
  return yield* Scope.provide(NodeSocketServer.makeTls(options), own)
})
