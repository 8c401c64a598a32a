/** Downloads whose rest is read from the store while they are sent. */
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { Caller } from "@svc/domain/account/Authorization"
import { Effect, Stream } from "effect"

/**
 * Returns a function that ends a download when the credential of its request is no longer valid. The download fails then, so
 * that nobody takes it for complete. A client that reads slowly would otherwise get the rest long after a revocation.
 */
export const make = Effect.map(Effect.service(StandingCredentials), (credentials) =>
  Effect.fnUntraced(function* <A, E, R>(body: Stream.Stream<A, E, R>) {
    const ended = yield* credentials.watch(yield* Caller)
    return Stream.interruptWhen(
      body,
      Effect.andThen(ended, Effect.die(new Error("The credential of a download ended"))),
    )
  }),
)
