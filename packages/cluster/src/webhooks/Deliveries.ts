/**
 * Deliveries as rows. A delivery carries its own next attempt, so a restart forgets nothing; starting an attempt takes
 * a lease on the row (`attempt_started_at`, with `next_attempt_at` a minute ahead), so none runs twice at once and a
 * record is only taken from the holder of the lease. That lease is also the fence, so the actors of a process lease and
 * record in statements they share: what one delivery leaves and what its place gets next are one statement and one commit.
 */
import { toPublic as publicId } from "@svc/domain/Ids"
import { attemptsInAll, nextAttemptAt } from "@svc/domain/webhooks/RetrySchedule"
import { Attempt } from "@svc/domain/deliveries/Delivery"
import { Context, Effect, Exit, Layer, Schema } from "effect"
import { system } from "@svc/domain/account/Initiator"
import type { SqlError, Statement } from "effect/sql"
import { raise } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Batcher from "../store/Batcher.ts"
import { isTransient, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Backlog } from "../work/Source.ts"

/** Attempts of one Webhook under way at once; retries have places of their own, so they never hold first attempts back. */
export const placesPerWebhook = { first: 4, retry: 4 }

/** A delivery whose next attempt is ours to make. */
const Leased = Schema.Struct({
  id: Schema.String,
  webhook_id: Schema.String,
  identity_id: Schema.String,
  url: Schema.String,
  first: Schema.Boolean,
  replay: Schema.Boolean,
  attempts: Schema.Array(Attempt),
  started_at: Schema.Date,
  event_id: Schema.String,
  event_type: Schema.String,
  event_data: Schema.Record(Schema.String, Schema.Unknown),
  event_created_at: Schema.Date,
  /** The signing secret that is current. */
  secret_id: Schema.NullOr(Schema.String),
})
export type Leased = typeof Leased.Type
const decodeLeased = Schema.decodeUnknownEffect(Schema.Array(Leased))

/** What was leased, and where that is nothing, when the next is due: null when none waits. */
export interface Lease {
  readonly leased: ReadonlyArray<Leased>
  readonly due: Date | null
}

interface LeaseRow {
  readonly asked: number
  readonly due: Date | null
  /** Null where nothing was leased. */
  readonly id: string | null
}
const encodeAttempt = Schema.encodeSync(Attempt)

/** How an attempt ended; `error` is a short stable word where no status arrived. */
export interface Outcome {
  readonly durationMs: number
  readonly statusCode: number | null
  readonly error: string | null
  /** How the answer's body begins. */
  readonly text: string | null
}

/** Attempts under way in this process by Webhook. */
export type Taken = ReadonlyMap<string, { readonly first: number; readonly retry: number }>

/** A call for what is due of one Identity. */
interface Wanted {
  readonly identityId: string
  readonly taken: Taken
  readonly now: Date
}

const currentSecret = (sql: Sql, identityId: Statement.Fragment) => sql`(
  select s.id from signing_secret s where s.identity_id = ${identityId} and s.retires_at is null
  order by s.created_at desc limit 1) as secret_id`

/** Deliveries that wait for an attempt: those of a disabled Webhook get none, though one under way is still to be recorded. */
const waiting = (sql: Sql) => sql`(d.attempt_started_at is not null or w.status = 'active')`

/**
 * CTEs `leased` and before: what is due and has a place, first attempts in the order of their Events, then retries by due
 * time.
 */
const leasing = (sql: Sql, wanted: ReadonlyArray<Wanted>) => {
  const busy = wanted.flatMap(({ taken }) => [...taken])
  const due = sql`webhook_id = w.id and attempt_started_at is null and next_attempt_at <= asked.now`
  return sql`
    asked as (
      select * from unnest(${wanted.map(({ identityId }) => identityId)}::uuid[], ${wanted.map(({ now }) => now.toISOString())}::timestamptz[])
        with ordinality as asked (identity_id, now, n)
    ),
    busy as (
      select * from unnest(
        ${busy.map(([id]) => id)}::uuid[], ${busy.map(([, n]) => n.first)}::int[], ${busy.map(([, n]) => n.retry)}::int[]
      ) as busy (webhook_id, first, retry)
    ),
    due as materialized (
      select d.id, d.first, asked.now, asked.n
      from asked join webhook w on w.identity_id = asked.identity_id and w.status = 'active'
      left join busy on busy.webhook_id = w.id
      cross join lateral (
        (select id, true as first from delivery where ${due} and status = 'queued'
         order by id limit greatest(0, ${placesPerWebhook.first} - coalesce(busy.first, 0)))
        union all
        (select id, false as first from delivery where ${due} and status = 'retrying'
         order by next_attempt_at limit greatest(0, ${placesPerWebhook.retry} - coalesce(busy.retry, 0)))
      ) d
    ),
    leased as (
      update delivery d
      set attempt_started_at = due.now, next_attempt_at = due.now + make_interval(secs => ${Timing.leaseMillis / 1000})
      from due where d.id = due.id and d.attempt_started_at is null
      returning d.id, d.webhook_id, d.identity_id, d.event_id, d.event_type, d.replay, d.attempts, due.first,
                due.now as started_at, due.n
    )`
}

/** The deliveries of `leased`, and when the next one is due of those who asked and got none. */
const leases = (sql: Sql) => sql`
  select asked.n::int as asked, l.id, l.webhook_id, l.identity_id, l.event_id, l.event_type, l.replay, l.attempts, l.first,
         l.started_at, l.url, l.event_data, l.event_created_at, ${currentSecret(sql, sql`asked.identity_id`)},
         case when l.id is null then ${nextDue(sql, sql`asked.identity_id`)} end as due
  from asked left join (
    select leased.*, w.url, e.data as event_data, e.created_at as event_created_at
    from leased join webhook w on w.id = leased.webhook_id join event e on e.id = leased.event_id
  ) l on l.n = asked.n
  order by asked.n, l.id`

const leasesOf = Effect.fnUntraced(function* (wanted: ReadonlyArray<Wanted>, rows: ReadonlyArray<LeaseRow>) {
  const leased = yield* Effect.orDie(decodeLeased(rows.filter(({ id }) => id !== null)))
  const byIdentity = Map.groupBy(leased, (delivery) => delivery.identity_id)
  const due = new Map(rows.map((row) => [row.asked, row.due]))
  return wanted.map(({ identityId }, index): Lease => ({
    leased: byIdentity.get(identityId) ?? [],
    due: due.get(index + 1) ?? null,
  }))
})

/** When the next delivery of an Identity is due; null when none waits. Leased ones count by the end of their lease. */
const nextDue = (sql: Sql, identityId: Statement.Fragment) => sql`(
  -- Not min(), which reads all that wait: the first in the order of the index that is not of a disabled Webhook.
  select d.next_attempt_at from delivery d join webhook w on w.id = d.webhook_id
  where d.identity_id = ${identityId} and d.next_attempt_at is not null and ${waiting(sql)}
  order by d.next_attempt_at limit 1)`

export const overdue: Backlog["overdue"] = (sql, late, atMost) =>
  Effect.map(
    sql<{ canonical: string }>`
      select i.canonical from (
        select d.identity_id, min(d.next_attempt_at) as due from delivery d join webhook w on w.id = d.webhook_id
        where d.next_attempt_at <= ${late} and ${waiting(sql)} group by d.identity_id order by due limit ${atMost}
      ) d join identity i on i.id = d.identity_id order by d.due`,
    (rows) => rows.map(({ canonical }) => canonical),
  )

/** An attempt that ended, and what follows by the table of waits. */
interface Ended {
  readonly delivery: Leased
  readonly attempt: Attempt
  readonly status: "delivered" | "retrying" | "failed"
  readonly next: Date | undefined
}

const judge = (delivery: Leased, outcome: Outcome): Ended => {
  const attempt: Attempt = {
    number: delivery.attempts.length + 1,
    started_at: delivery.started_at,
    duration_ms: outcome.durationMs,
    status_code: outcome.statusCode,
    error: outcome.error,
    response_body: outcome.text,
  }
  const delivered = outcome.statusCode !== null && outcome.statusCode >= 200 && outcome.statusCode < 300
  const next = delivered ? undefined : nextAttemptAt(attempt.number, delivery.started_at)
  return { delivery, attempt, status: delivered ? "delivered" : next === undefined ? "failed" : "retrying", next }
}

/**
 * CTE `recorded`: the attempts written down by those that still hold their lease. Arrays, not a set of JSON: of those the
 * planner expects few rows and looks each up, of the other a hundred, for which it reads a table that was small once. The
 * next time is read only of what is tried again; an array of nothing but nulls has no type.
 */
const recorded = (sql: Sql, ended: ReadonlyArray<Ended>) => sql`
  recorded as (
    update delivery d
    set status = case when retried then 'retrying' when e.status = 'delivered' then 'delivered' else 'failed' end,
        attempts = d.attempts || e.attempt::jsonb, attempt_started_at = null, next_attempt_at = case when retried then e.next end
    from unnest(
      ${ended.map(({ delivery }) => delivery.id)}::uuid[], ${ended.map(({ delivery }) => delivery.webhook_id)}::uuid[],
      ${ended.map(({ delivery }) => delivery.started_at.toISOString())}::timestamptz[], ${ended.map(({ status }) => status)}::text[],
      ${ended.map(({ attempt }) => JSON.stringify(encodeAttempt(attempt)))}::text[],
      ${ended.map(({ delivery, next = delivery.started_at }) => next.toISOString())}::timestamptz[]
    ) as e (id, webhook_id, started_at, status, attempt, next)
    join webhook w on w.id = e.webhook_id
    -- A Webhook that was disabled meanwhile gets no further attempt.
    cross join lateral (select e.status = 'retrying' and w.status = 'active' as retried) now
    where d.id = e.id and d.attempt_started_at = e.started_at
    returning d.id
  )`

/** The identity whose Events tell of a failed delivery. */
interface Owner {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

/** After the seventh failure the delivery has failed and `webhook.failed` is raised, though not for its own Webhook. */
const recordFailure = Effect.fnUntraced(function* (sql: Sql, identity: Owner, ended: Ended, now: Date) {
  const { delivery, attempt } = ended
  const write = { sql, identity, at: now, by: system }
  const data = {
    webhook_id: publicId("wh_", delivery.webhook_id),
    delivery_id: publicId("dlv_", delivery.id),
    event_id: publicId("evt_", delivery.event_id),
    event_type: delivery.event_type,
    attempts: attemptsInAll,
    status_code: attempt.status_code,
    error: attempt.error,
  }
  yield* sql`
    with ${recorded(sql, [ended])}, ${raise(write, "recorded", "webhook.failed", data, { except: delivery.webhook_id })}
    select 1 from recorded`
})

/** Attempts whose process died: their leases have run out. They count as attempts, since the target may have seen them. */
const abandoned = (sql: Sql, identityId: string, now: Date) =>
  sql`
    select d.id, d.webhook_id, d.identity_id, d.event_id, d.event_type, d.replay, d.attempts, w.url,
           d.status = 'queued' as first, d.attempt_started_at as started_at,
           e.data as event_data, e.created_at as event_created_at, ${currentSecret(sql, sql`d.identity_id`)}
    from delivery d join webhook w on w.id = d.webhook_id join event e on e.id = d.event_id
    where d.identity_id = ${identityId} and d.attempt_started_at is not null and d.next_attempt_at <= ${now}
    limit 100`.pipe(Effect.flatMap((rows) => Effect.orDie(decodeLeased(rows))))

/** What attempts of one process want of the store at the same time. */
type Wish = { readonly _tag: "Lease"; readonly wanted: Wanted } | { readonly _tag: "Record"; readonly ended: Ended }

const none: Lease = { leased: [], due: null }

/** Answers each wish with a lease; to a record that is none. */
const grant =
  (sql: Sql) =>
  (wishes: ReadonlyArray<Wish>): Effect.Effect<ReadonlyArray<Granted>, SqlError.SqlError> => {
    const wanted = wishes.flatMap((wish) => (wish._tag === "Lease" ? [wish.wanted] : []))
    const ended = wishes.flatMap((wish) => (wish._tag === "Record" ? [wish.ended] : []))
    const statement =
      wanted.length === 0
        ? Effect.as(sql`with ${recorded(sql, ended)} select 1`, [])
        : Effect.flatMap(
            ended.length === 0
              ? sql<LeaseRow>`with ${leasing(sql, wanted)} ${leases(sql)}`
              : sql<LeaseRow>`with ${recorded(sql, ended)}, ${leasing(sql, wanted)} ${leases(sql)}`,
            (rows) => leasesOf(wanted, rows),
          )
    return statement.pipe(
      Effect.map((found) => {
        let n = 0
        return wishes.map(({ _tag }): Granted => Exit.succeed(_tag === "Lease" ? found[n++]! : none))
      }),
      // What one of them holds up is no matter of the others.
      Effect.catchIf(
        (error) => wishes.length > 1 && !isTransient(error),
        () =>
          Effect.forEach(wishes, (wish) => Effect.exit(Effect.flatMap(grant(sql)([wish]), ([granted]) => granted!))),
      ),
    )
  }
type Granted = Exit.Exit<Lease, SqlError.SqlError>

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const feed = yield* ChangeFeed
  const ask = yield* Batcher.make(grant(sql))
  return {
    lease: (wanted: Wanted) => Effect.flatten(ask({ _tag: "Lease", wanted })),
    abandoned: (identityId: string, now: Date) => abandoned(sql, identityId, now),
    /** Records how the attempt ended; nothing happens when its lease was lost. */
    record: (identity: Owner, delivery: Leased, outcome: Outcome, now: Date) => {
      const ended = judge(delivery, outcome)
      // A failed delivery of `webhook.failed` raises none: two dead Webhooks would keep each other busy for ever.
      return ended.status === "failed" && delivery.event_type !== "webhook.failed"
        ? Effect.tap(recordFailure(sql, identity, ended, now), () =>
            Effect.sync(() => feed.announce({ org: identity.orgId, identity: identity.id })),
          )
        : Effect.asVoid(Effect.flatten(ask({ _tag: "Record", ended })))
    },
  }
})

export class Deliveries extends Context.Service<Deliveries, Effect.Success<typeof make>>()(
  "@svc/cluster/webhooks/Deliveries",
) {
  static readonly layer = Layer.effect(Deliveries, make)
}
