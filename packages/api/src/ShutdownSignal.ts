/**
 * Announces the shutdown of the process, so that streams and long polls end and the server need not wait for them. {@link
 * announced} must be built on top of the server layer, because layers are released in reverse order.
 */
import { Context, Effect, Latch, Layer } from "effect"

export class ShutdownSignal extends Context.Service<ShutdownSignal, Latch.Latch>()("@svc/api/ShutdownSignal") {
  static readonly layer = Layer.sync(ShutdownSignal, () => Latch.makeUnsafe())
}

export const announced = Layer.effectDiscard(
  Effect.flatMap(ShutdownSignal, (shutdown) => Effect.addFinalizer(() => shutdown.open)),
)
