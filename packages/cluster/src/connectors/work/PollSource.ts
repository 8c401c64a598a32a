/**
 * Polls as a work source of the actor. One poll runs at a time: every 30 seconds while posts arrive, up to every ten
 * minutes otherwise, and later if the platform asks for it. Events and the new mark are separate commits, so that an
 * interrupted poll is repeated. The row that deduplicates a post and its Event are one commit, so that each post raises
 * one Event.
 */
import { createHash } from "node:crypto"
import { system } from "@svc/domain/account/Initiator"
import type { Heard } from "@svc/domain/connectors/Post"
import type { PlatformName } from "@svc/domain/connectors/Connector"
import { Clock, Effect, Random } from "effect"
import { commit, type Fenced, type OwnIdentity, type Write } from "../../actor/Write.ts"
import { raise } from "../../events/Raise.ts"
import { Timing } from "../../Timing.ts"
import { withTimeout } from "../PlatformCalls.ts"
import * as ConnectionWrites from "../ConnectionWrites.ts"
import { type Connection, isPaused } from "../ConnectorState.ts"
import { boundedPost, boundedWords } from "../platforms/ResponseBounds.ts"
import { type Account, type Poll, pollAtMost, type ReceivedPost } from "../platforms/Platform.ts"
import { dueWork } from "./DueWork.ts"
import { credentialRefused } from "../Refusals.ts"

/** Limit of Events per hour. Further posts stay at the platform, because the mark does not advance. */
const eventsPerHour = 300
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

  make: Effect.fnUntraced(function* ({ ownership, calls, pollTrigger, sql }) {
    let raised: ReadonlyArray<{ readonly at: number; readonly count: number }> | undefined

    const eventsInLastHour = Effect.fnUntraced(function* (identity: OwnIdentity, now: number) {
      // The actor leaves memory between slow polls, so the first count is that of the store.
      raised ??= yield* Effect.map(
        sql<{ at: Date; count: number }>`
          select heard_at as at, count(*)::int as count from connector_heard
          where identity_id = ${identity.id} and platform = ${calls.platform.name} and heard_at > ${new Date(now - hour)}
          group by heard_at`,
        (rows) => rows.map(({ at, count }) => ({ at: at.getTime(), count })),
      )
      raised = raised.filter(({ at }) => at > now - hour)
      return raised.reduce((sum, { count }) => sum + count, 0)
    })

    const slower = (connection: Connection, factor: number) =>
      Math.min(Timing.pollLongestMillis, Math.round(connection.pollWaitMillis * factor))

    const report = Effect.fnUntraced(function* (identity: OwnIdentity, connection: Connection, poll: Poll) {
      let count = 0
      for (const run of groupByKind(poll.received.slice(0, pollAtMost))) {
        count += yield* ownership.write(system, (write) =>
          raiseEvents(write, { identity, platform: calls.platform.name, account: connection.account }, run),
        )
      }
      return count
    })

    const pollOnce = Effect.fn("PollSource.poll")(function* (identity: OwnIdentity, connection: Connection) {
      const start = yield* Clock.currentTimeMillis
      if ((yield* eventsInLastHour(identity, start)) >= eventsPerHour) {
        const outcome: Outcome = {
          waitMillis: connection.pollWaitMillis,
          dueAt: new Date(start + Timing.pollLongestMillis),
          error: `More than ${eventsPerHour} posts arrived within an hour; the others are reported later.`,
          mark: null,
        }
        return outcome
      }
      const session = calls.session(identity, connection)
      const poll = yield* withTimeout(calls.platform.poll(session, connection.mark ?? undefined))
      const count = yield* report(identity, connection, poll)
      const now = yield* Clock.currentTimeMillis
      raised = [...(raised ?? []), { at: now, count }]
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
    const record = (connection: Connection, outcome: Outcome, requests: number) =>
      Effect.flatMap(Random.next, (random) =>
        calls.change((write, state) => {
          const present = state.connection
          if (present?.id !== connection.id || present.status !== "connected")
            return Effect.succeed({ value: undefined })
          const { sql, at } = write
          const waited = at.getTime() + outcome.waitMillis * (0.9 + 0.2 * random)
          pollTrigger.deferUntil(outcome.dueAt)
          const due =
            pollTrigger.requests() === requests
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

    const polled = (identity: OwnIdentity, connection: Connection, requests: number) =>
      pollOnce(identity, connection).pipe(
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
            Effect.logError("A poll failed with a defect", defect),
            failed(connection, "The poll failed because of an error in this service.", null),
          ),
        ),
        Effect.flatMap((outcome) => (outcome === null ? Effect.void : record(connection, outcome, requests))),
      )

    return (identity, connection) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        pollTrigger.pollStarted(now)
        return polled(identity, connection, pollTrigger.requests())
      })
  }),
})

const latest = (a: Date | null, b: Date | null): Date | null => (a === null || b === null ? (a ?? b) : a > b ? a : b)

/** Groups consecutive posts of the same kind, since a statement raises Events of one type. */
const groupByKind = (posts: ReadonlyArray<ReceivedPost>): ReadonlyArray<ReadonlyArray<ReceivedPost>> => {
  const found: Array<Array<ReceivedPost>> = []
  for (const one of posts) {
    const last = found.at(-1)
    if (last !== undefined && last[0]!.kind === one.kind) last.push(one)
    else found.push([one])
  }
  return found
}

const typeOf = { mention: "connector.mention", reply: "connector.reply", dm: "connector.dm" } as const satisfies {
  readonly [K in Heard]: string
}

const hash = (key: string) => createHash("sha256").update(key).digest("hex")

const json = (posts: ReadonlyArray<ReceivedPost>) =>
  JSON.stringify(
    posts.map(({ key, post, at }) => {
      const bounded = boundedPost(post)
      return {
        key: hash(key),
        post: { ...bounded, created_at: bounded.created_at.toISOString() },
        at: at.toISOString(),
      }
    }),
  )

/** Raises an Event for each post that has none yet. Returns their number. */
const raiseEvents = Effect.fnUntraced(function* (
  fenced: Fenced,
  of: { readonly identity: OwnIdentity; readonly platform: PlatformName; readonly account: Account },
  run: ReadonlyArray<ReceivedPost>,
) {
  const { sql, at } = fenced
  const write: Write = { ...fenced, identity: of.identity }
  const { told } = yield* commit<{ told: number }>(
    write,
    sql`given as (
      select distinct on (key) key, post, at, n
      from rows from (jsonb_to_recordset(${json(run)}::jsonb) as (key text, post jsonb, at text)) with ordinality as g (key, post, at, n)
      order by key, n
    ),
    noted as (
      insert into connector_heard (identity_id, platform, key, heard_at)
      select ${of.identity.id}::uuid, ${of.platform}::text, decode(given.key, 'hex'), ${at}::timestamptz from fence, given
      on conflict do nothing
      returning key
    ),
    told as (
      select given.post, given.at from noted join given on decode(given.key, 'hex') = noted.key order by given.n
    ),
    ${raise(write, "told", typeOf[run[0]!.kind], {
      platform: of.platform,
      account: of.account.name,
      post: sql`told.post`,
      at: sql`told.at`,
    })}`,
    { columns: sql`(select count(*)::int from told) as told`, raises: true },
  )
  return told
})
