/**
 * The process is on its way out: what lasts (streams, waits) ends at once, so that the server need not wait for it.
 * Its end begins before the server's, which is why {@link announced} is built on top of what serves.
 */
import { Context, Effect, Latch, Layer } from "effect"

export class Departure extends Context.Service<Departure, Latch.Latch>()("@svc/api/Departure") {
  static readonly layer = Layer.sync(Departure, () => Latch.makeUnsafe())
}

export const announced = Layer.effectDiscard(
  Effect.flatMap(Departure, (begun) => Effect.addFinalizer(() => begun.open)),
)
