/**
 * Polls as a work source of the actor. One poll runs at a time: every 30 seconds while posts arrive, up to every ten
 * minutes otherwise, and later if the platform asks for it. Events and the new mark are separate commits, so that an
 * interrupted poll is repeated without raising an Event twice.
 */
import { system } from "@svc/domain/account/Initiator"
import { Clock, Effect, Random } from "effect"
import { commit, type OwnIdentity } from "../../actor/Write.ts"
import { Timing } from "../../Timing.ts"
import { withTimeout } from "../PlatformCalls.ts"
import * as ConnectionWrites from "../ConnectionWrites.ts"
import { type Connection, isPaused } from "../ConnectorState.ts"
import * as PollResults from "./PollResults.ts"
import { boundedWords } from "../platforms/ResponseBounds.ts"
import { type Poll, pollAtMost } from "../platforms/Platform.ts"
import { dueWork } from "./DueWork.ts"
import { credentialRefused } from "../StopReason.ts"

/** Limit of Events per hour. Further posts stay at the platform, because the mark does not advance. */
const toldPerHour = 300
const hour = 60 * 60 * 1000

/** The outcome of a poll. */
interface Outcome {
  readonly waitMillis: number
  /** When the next poll is due; null to use `waitMillis`. */
  readonly dueAt: Date | null
  readonly error: string | null
  readonly mark: string | null
}

export const source = dueWork({
  name: "polls",
  column: "poll_due_at",
  dueOf: ({ pollDueAt }) => pollDueAt,

  make: Effect.fnUntraced(function* ({ ownership, calls, pollTrigger }) {
    let told: ReadonlyArray<{ readonly at: number; readonly count: number }> = []

    const toldLately = (now: number) => {
      told = told.filter(({ at }) => at > now - hour)
      return told.reduce((sum, { count }) => sum + count, 0)
    }

    const slower = (connection: Connection, factor: number) =>
      Math.min(Timing.pollLongestMillis, Math.round(connection.pollWaitMillis * factor))

    const tell = Effect.fnUntraced(function* (identity: OwnIdentity, connection: Connection, poll: Poll) {
      let count = 0
      for (const run of PollResults.groupByKind(poll.received.slice(0, pollAtMost))) {
        count += yield* ownership.write(system, (write) =>
          PollResults.raiseEvents(write, { identity, platform: calls.platform.name, account: connection.account }, run),
        )
      }
      return count
    })

    const listen = Effect.fn("Polling.listen")(function* (identity: OwnIdentity, connection: Connection) {
      const start = yield* Clock.currentTimeMillis
      if (toldLately(start) >= toldPerHour) {
        const outcome: Outcome = {
          waitMillis: connection.pollWaitMillis,
          dueAt: new Date(start + Timing.pollLongestMillis),
          error: `More than ${toldPerHour} posts came in an hour; the rest is told later.`,
          mark: null,
        }
        return outcome
      }
      const session = calls.session(identity, connection)
      const poll = yield* withTimeout(calls.platform.poll(session, connection.mark ?? undefined), calls.platform.title)
      const count = yield* tell(identity, connection, poll)
      const now = yield* Clock.currentTimeMillis
      told = [...told, { at: now, count }]
      const dueAt = poll.more && count > 0 ? new Date(now) : null
      const outcome: Outcome = {
        // The first poll only determines the position.
        waitMillis: count > 0 || connection.mark === null ? Timing.pollSoonestMillis : slower(connection, 1.5),
        dueAt: latest(dueAt, poll.notBefore ?? session.http.quietUntil() ?? null),
        error: null,
        mark: poll.mark,
      }
      return outcome
    })

    const failed = (connection: Connection, error: string, until: Date | null): Outcome => ({
      waitMillis: slower(connection, 2),
      dueAt: until,
      error: boundedWords(error),
      mark: null,
    })

    /** Stores the outcome. `polled_at` is the time of the last successful poll. */
    const record = (connection: Connection, outcome: Outcome, rings: number) =>
      Effect.flatMap(Random.next, (random) =>
        calls.change((write, state) => {
          const present = state.connection
          if (present?.id !== connection.id || present.status !== "connected")
            return Effect.succeed({ value: undefined })
          const { sql, at } = write
          const waited = at.getTime() + outcome.waitMillis * (0.9 + 0.2 * random)
          pollTrigger.deferUntil(outcome.dueAt)
          const due =
            pollTrigger.rings() === rings
              ? (outcome.dueAt ?? new Date(Math.round(waited)))
              : // Another poll was requested during this one and may concern posts that this one missed.
                new Date(pollTrigger.earliest(at.getTime()))
          const next: Connection = {
            ...present,
            mark: outcome.mark ?? present.mark,
            lastError: outcome.error,
            pollWaitMillis: outcome.waitMillis,
            pollDueAt: isPaused(state) ? null : due,
          }
          return Effect.as(
            commit(
              write,
              sql`polled as (
                update connector set mark = ${next.mark}::text, last_error = ${outcome.error}::text,
                  polled_at = ${outcome.error === null ? sql`${at}::timestamptz` : sql`polled_at`},
                  poll_wait_millis = ${next.pollWaitMillis}::int, poll_due_at = ${next.pollDueAt}::timestamptz
                where connection_id = ${connection.id}::uuid and status = 'connected' and exists (select from fence)
              )`,
            ),
            { value: undefined, state: { ...state, connection: next } },
          )
        }),
      )

    const polled = (identity: OwnIdentity, connection: Connection, rings: number) =>
      listen(identity, connection).pipe(
        Effect.catchTags({
          CredentialRefused: ({ message }) =>
            Effect.as(
              calls.change((write, state) =>
                ConnectionWrites.stop(write, state, connection.id, credentialRefused(calls.platform, message)),
              ),
              null,
            ),
          PlatformRateLimited: ({ message, until }) => Effect.succeed(failed(connection, message, until)),
          PlatformUnreachable: ({ message }) => Effect.succeed(failed(connection, message, null)),
          PlatformRefused: ({ message }) => Effect.succeed(failed(connection, message, null)),
          Unsupported: ({ message }) => Effect.succeed(failed(connection, message, null)),
          InputRefused: ({ message }) => Effect.succeed(failed(connection, message, null)),
          Halted: () => Effect.succeed(null),
        }),
        // A defect must not be repeated without delay.
        Effect.catchDefect((defect) =>
          Effect.as(
            Effect.logError("A poll ended in a defect", defect),
            failed(connection, "Something went wrong here while the platform was asked.", null),
          ),
        ),
        Effect.flatMap((outcome) => (outcome === null ? Effect.void : record(connection, outcome, rings))),
      )

    return (identity, connection) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        pollTrigger.pollStarted(now)
        return polled(identity, connection, pollTrigger.rings())
      })
  }),
})

const latest = (one: Date | null, other: Date | null): Date | null =>
  one === null || other === null ? (one ?? other) : one > other ? one : other
