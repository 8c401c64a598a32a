/** What a call of an actor can fail with once the ways it is not delivered have become `unavailable`. */
import type { Duration, Effect } from "effect"
import type { ClusterError } from "effect/cluster"
import type { Unavailable } from "../problems/Problem.ts"
import type { Moved } from "./Moved.ts"

export type Undelivered =
  | Moved
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

export type Asked<E> = Exclude<E, Undelivered> | Unavailable

/** The options of a client's call: for whom it is made. */
export interface OnBehalf {
  readonly headers: Readonly<Record<string, string>>
}

/** Asks one actor on somebody's behalf: `ask((actor, by) => actor.Retry(payload, by))`. */
export interface Ask<Client> {
  <A, E, R>(
    message: (actor: Client, by: OnBehalf) => Effect.Effect<A, E, R>,
    deadline?: Duration.Input,
  ): Effect.Effect<A, Asked<E>, R>
}
