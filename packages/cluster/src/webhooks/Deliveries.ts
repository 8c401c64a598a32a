/**
 * The rows of deliveries. A row stores the time of its next attempt, so a restart loses nothing. An attempt leases its row
 * (`attempt_started_at`, with `next_attempt_at` a minute ahead), so no attempt runs twice, and only the holder of the lease can
 * record the outcome. The lease is also the fence, so the actors of a process share statements: the outcome of one delivery and
 * the lease of the next one are one statement and one commit.
 */
import { toPublic as publicId } from "@svc/domain/Ids"
import { attemptsInAll, nextAttemptAt } from "@svc/domain/webhooks/RetrySchedule"
import { Attempt } from "@svc/domain/deliveries/Delivery"
import { Context, Effect, Exit, Layer, Schema } from "effect"
import { system } from "@svc/domain/account/Initiator"
import type { SqlError, Statement } from "effect/sql"
import { creatorColumns } from "../credentials/Creator.ts"
import { raise } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Batcher from "../store/Batcher.ts"
import { isTransient, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { bucketOf, UsageCounters } from "../usage/UsageCounters.ts"
import { lateIdentities } from "../work/LateIdentities.ts"
import { joinWebhookCreator } from "./WebhookState.ts"

/** The maximum number of concurrent attempts per Webhook. Retries are counted separately, so they never delay first attempts. */
const placesPerWebhook = { first: 4, retry: 4 }

/** A leased delivery. */
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
  /** The creator of the Webhook, as it was when the delivery was leased. */
  creator_kind: Schema.NullOr(Schema.String),
  creator_end: Schema.NullOr(Schema.Literals(["creator_revoked", "creator_expired", "creator_narrowed"])),
  creator_scopes: Schema.NullOr(Schema.String),
})
export type Leased = typeof Leased.Type
const decodeLeased = Schema.decodeUnknownEffect(Schema.Array(Leased))

/** The leased deliveries. If there are none, `due` is when the next delivery is due, or null. */
interface Lease {
  readonly leased: ReadonlyArray<Leased>
  readonly due: Date | null
}

interface LeaseRow {
  readonly requested: number
  readonly due: Date | null
  /** Null where nothing was leased. */
  readonly id: string | null
}
const encodeAttempt = Schema.encodeSync(Attempt)

/** The outcome of an attempt; `error` is a stable code if no status was received. */
export interface Outcome {
  readonly durationMs: number
  readonly statusCode: number | null
  readonly error: string | null
  /** The beginning of the response body. */
  readonly text: string | null
  /** The delivery was not attempted, because the creator of the Webhook may not read the Event. It is not retried. */
  readonly withheld?: true
}

/** The attempts in flight in this process, by Webhook. */
type Taken = ReadonlyMap<string, { readonly first: number; readonly retry: number }>

/** A request for the due deliveries of an Identity. */
interface Wanted {
  readonly identityId: string
  readonly taken: Taken
  readonly now: Date
}

const currentSecret = (sql: Sql, identityId: Statement.Fragment) => sql`(
  select s.id from signing_secret s where s.identity_id = ${identityId} and s.retires_at is null
  order by s.created_at desc limit 1) as secret_id`

/** The condition for pending deliveries: the Webhook is active, or an attempt is in flight and must still be recorded. */
const waiting = (sql: Sql) => sql`(d.attempt_started_at is not null or w.status = 'active')`

/**
 * Returns the common table expressions up to `leased`: the due deliveries within the limits, first attempts in the order of
 * their Events, then retries by due time.
 */
const leasing = (sql: Sql, wanted: ReadonlyArray<Wanted>) => {
  const busy = wanted.flatMap(({ taken }) => [...taken])
  const due = sql`webhook_id = w.id and attempt_started_at is null and next_attempt_at <= requested.now`
  return sql`
    requested as (
      select * from unnest(${wanted.map(({ identityId }) => identityId)}::uuid[], ${wanted.map(({ now }) => now.toISOString())}::timestamptz[])
        with ordinality as requested (identity_id, now, n)
    ),
    busy as (
      select * from unnest(
        ${busy.map(([id]) => id)}::uuid[], ${busy.map(([, n]) => n.first)}::int[], ${busy.map(([, n]) => n.retry)}::int[]
      ) as busy (webhook_id, first, retry)
    ),
    due as materialized (
      select d.id, d.first, requested.now, requested.n
      from requested join webhook w on w.identity_id = requested.identity_id and w.status = 'active'
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

/** Selects the deliveries of `leased`, and for a request without any, when the next delivery is due. */
const leases = (sql: Sql) => sql`
  select requested.n::int as requested, l.id, l.webhook_id, l.identity_id, l.event_id, l.event_type, l.replay, l.attempts, l.first,
         l.started_at, l.url, l.event_data, l.event_created_at, l.creator_kind, l.creator_end, l.creator_scopes, ${currentSecret(sql, sql`requested.identity_id`)},
         case when l.id is null then ${nextDue(sql, sql`requested.identity_id`)} end as due
  from requested left join (
    select leased.*, w.url, e.data as event_data, e.created_at as event_created_at, ${creatorColumns(sql)}
    from leased join webhook w on w.id = leased.webhook_id join event e on e.id = leased.event_id
      ${joinWebhookCreator(sql, sql`leased.started_at`)}
  ) l on l.n = requested.n
  order by requested.n, l.id`

const leasesOf = Effect.fnUntraced(function* (wanted: ReadonlyArray<Wanted>, rows: ReadonlyArray<LeaseRow>) {
  const leased = yield* Effect.orDie(decodeLeased(rows.filter(({ id }) => id !== null)))
  const byIdentity = Map.groupBy(leased, (delivery) => delivery.identity_id)
  const due = new Map(rows.map((row) => [row.requested, row.due]))
  return wanted.map(({ identityId }, index): Lease => ({
    leased: byIdentity.get(identityId) ?? [],
    due: due.get(index + 1) ?? null,
  }))
})

/** Selects when the next delivery of an Identity is due, or null. A leased delivery is due at the end of its lease. */
const nextDue = (sql: Sql, identityId: Statement.Fragment) => sql`(
  -- In the order of the index, since min() would read all pending deliveries.
  select d.next_attempt_at from delivery d join webhook w on w.id = d.webhook_id
  where d.identity_id = ${identityId} and d.next_attempt_at is not null and ${waiting(sql)}
  order by d.next_attempt_at limit 1)`

export const overdue = lateIdentities(
  "delivery",
  (sql, late) => sql`exists (
    select from delivery d join webhook w on w.id = d.webhook_id
    where d.identity_id = i.id and d.next_attempt_at <= ${late} and ${waiting(sql)})`,
)

/** An ended attempt, and the next state of the delivery by the retry schedule. */
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
  const next = delivered || outcome.withheld === true ? undefined : nextAttemptAt(attempt.number, delivery.started_at)
  return { delivery, attempt, status: delivered ? "delivered" : next === undefined ? "failed" : "retrying", next }
}

/**
 * Returns the common table expression `recorded`: the attempts whose lease is still held. The parameters are arrays and not a set
 * of JSON, for which the planner expects a hundred rows and would scan the table. `next` is ignored unless the delivery is
 * retried, but never null, since an array of nulls has no type.
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

/** The Identity that owns a delivery. */
interface Owner {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

/** Records the last failed attempt of a delivery and raises `webhook.failed`, which the failed Webhook itself does not receive. */
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

/** Selects attempts with an expired lease, whose process crashed. They count as attempts, since the target may have received them. */
const abandoned = (sql: Sql, identityId: string, now: Date) =>
  sql`
    select d.id, d.webhook_id, d.identity_id, d.event_id, d.event_type, d.replay, d.attempts, w.url,
           d.status = 'queued' as first, d.attempt_started_at as started_at,
           e.data as event_data, e.created_at as event_created_at, ${currentSecret(sql, sql`d.identity_id`)},
           null as creator_kind, null as creator_end, null as creator_scopes
    from delivery d join webhook w on w.id = d.webhook_id join event e on e.id = d.event_id
    where d.identity_id = ${identityId} and d.attempt_started_at is not null and d.next_attempt_at <= ${now}
    limit 100`.pipe(Effect.flatMap((rows) => Effect.orDie(decodeLeased(rows))))

/** A request of the deliveries of one process to the store. */
type Wish = { readonly _tag: "Lease"; readonly wanted: Wanted } | { readonly _tag: "Record"; readonly ended: Ended }

const none: Lease = { leased: [], due: null }

/** Carries out requests in one statement. The result of a record is an empty lease. */
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
      // A request that makes the statement fail must fail alone.
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
  const usage = yield* UsageCounters
  return {
    lease: (wanted: Wanted) => Effect.flatten(ask({ _tag: "Lease", wanted })),
    abandoned: (identityId: string, now: Date) => abandoned(sql, identityId, now),
    /** Records the outcome of an attempt, unless its lease was lost. */
    record: (identity: Owner, delivery: Leased, outcome: Outcome, now: Date) => {
      const ended = judge(delivery, outcome)
      // A failed delivery of `webhook.failed` raises no Event: two dead Webhooks would notify each other endlessly.
      const recording =
        ended.status === "failed" && outcome.withheld !== true && delivery.event_type !== "webhook.failed"
          ? Effect.tap(recordFailure(sql, identity, ended, now), () =>
              Effect.sync(() => feed.announce({ org: identity.orgId, identity: identity.id })),
            )
          : Effect.asVoid(Effect.flatten(ask({ _tag: "Record", ended })))
      const recorded = Effect.tap(recording, () =>
        Effect.sync(() => feed.changed(identity.orgId, { resource: "deliveries", handle: identity.handle })),
      )
      if (outcome.withheld === true) return recorded
      const amount = {
        count: 1,
        failed: ended.status === "delivered" ? 0 : 1,
        bucket: bucketOf(outcome.durationMs),
        webhook: delivery.webhook_id,
      }
      return Effect.tap(recorded, () => Effect.sync(() => usage.add({ identity: identity.id }, "delivery", amount)))
    },
  }
})

export class Deliveries extends Context.Service<Deliveries, Effect.Success<typeof make>>()(
  "@svc/cluster/webhooks/Deliveries",
) {
  static readonly layer = Layer.effect(Deliveries, make)
}
