/**
 * The process is on its way out: what lasts (streams, waits) ends at once, so that the server need not wait for it.
 * Its end begins before the server's, which is why {@link announced} is built on top of what serves.
 */
import { Context, Effect, Latch, Layer } from "effect"

export class ShutdownSignal extends Context.Service<ShutdownSignal, Latch.Latch>()("@svc/api/ShutdownSignal") {
  static readonly layer = Layer.sync(ShutdownSignal, () => Latch.makeUnsafe())
}

export const announced = Layer.effectDiscard(
  Effect.flatMap(ShutdownSignal, (begun) => Effect.addFinalizer(() => begun.open)),
)
