/**
 * Calls actors from anywhere in the cluster. A call has a deadline, retries if the actor has just moved, and converts
 * failures that the caller cannot act on (no owner, full mailbox, timeout) to `unavailable`.
 */
import { type Initiator, initiatorHeader, commandHeader, encodeBy, noteHeader } from "@svc/domain/account/Initiator"
import type { Moved } from "@svc/domain/actor/Protocol"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Duration, Effect, Exit, Predicate } from "effect"
import type { ClusterError } from "effect/cluster"
import * as Metrics from "../observe/Metrics.ts"
import { within } from "../store/Deadline.ts"
import { nameOf } from "./ActorClients.ts"
import { Timing } from "../Timing.ts"
import type { AuditNote } from "./Write.ts"

type Undelivered =
  | Moved
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

/** The errors of a call. */
type AskFailure<E> = Exclude<E, Undelivered> | Unavailable

const outOfReach = () =>
  new Unavailable({
    detail: "The service did not respond in time. The change may have been made.",
    retry_after_seconds: 1,
  })

const outcomes = Metrics.counter("svc_asks_total", "Calls of actors by this process", ["message", "outcome"])
const duration = Metrics.histogram("svc_ask_duration_seconds", "Durations of calls of actors", Metrics.seconds, []).of()

export const ask = <A, E, R>(
  message: Effect.Effect<A, E, R>,
  deadline: Duration.Input = usual,
): Effect.Effect<A, AskFailure<E>, R> =>
  Effect.suspend(() => {
    const since = performance.now()
    return Effect.onExitPrimitive(call(message, deadline), (exit) => {
      duration.observe((performance.now() - since) / 1000)
      // A rejection by the handler counts as a response.
      const isOutOfReach =
        Exit.isFailure(exit) &&
        exit.cause.reasons.some((reason) => "error" in reason && Predicate.isTagged(reason.error, "unavailable"))
      outcomes.of(nameOf(message), isOutOfReach ? "unavailable" : "answered").n++
      return undefined
    })
  })

/** The default deadline, parsed once because every call uses it. */
const usual = Duration.fromInputUnsafe(Timing.ask)

const call = <A, E, R>(message: Effect.Effect<A, E, R>, deadline: Duration.Input): Effect.Effect<A, AskFailure<E>, R> =>
  within(found(message), Duration.toMillis(deadline), () => Effect.fail(outOfReach())).pipe(
    Effect.catchIf(isUndelivered, () => Effect.fail(outOfReach())),
  ) as Effect.Effect<A, AskFailure<E>, R>

/**
 * Retries until the actor is found. This is a loop because a schedule would be created for every call, and almost no
 * call needs it.
 */
const found = <A, E, R>(message: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catchIf(message, isElsewhere, () => Effect.andThen(Effect.sleep(Timing.askRetry), found(message)))

const isElsewhere = (error: unknown) =>
  Predicate.isTagged(error, "Moved") || Predicate.isTagged(error, "EntityNotAssignedToRunner")
const undelivered = [
  "Moved",
  "MailboxFull",
  "AlreadyProcessingMessage",
  "PersistenceError",
  "EntityNotAssignedToRunner",
]
const isUndelivered = (error: unknown) => undelivered.some((tag) => Predicate.isTagged(error, tag))

/**
 * Returns the call option that names the initiator and the command, and carries the command's audit record:
 * `actor.Retry(payload, onBehalfOf(by))`.
 */
export const onBehalfOf = (by: Initiator, command?: string, note?: AuditNote) => ({
  headers: {
    [initiatorHeader]: encodeBy(by),
    ...(command === undefined ? {} : { [commandHeader]: command }),
    ...(note === undefined ? {} : { [noteHeader]: note.text }),
  },
})
