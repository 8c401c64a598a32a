/**
 * Deliveries as rows. A delivery carries its own next attempt, so a restart forgets nothing; starting an attempt takes
 * a lease on the row (`attempt_started_at`, with `next_attempt_at` a minute ahead), so none runs twice at once and a
 * record is only taken from the holder of the lease.
 */
import { makeUuidV7, toPublic as publicId } from "@svc/domain/Ids"
import { attemptsInAll, nextAttemptAt } from "@svc/domain/webhooks/RetrySchedule"
import { Attempt } from "@svc/domain/webhooks/Webhook"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { raiseForIdentity } from "../events/Raise.ts"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** Attempts of one Webhook under way at once; retries have places of their own, so they never hold first attempts back. */
export const placesPerWebhook = { first: 4, retry: 4 }

/** A delivery whose next attempt is ours to make. */
const Leased = Schema.Struct({
  id: Schema.String,
  webhook_id: Schema.String,
  url: Schema.String,
  first: Schema.Boolean,
  replay: Schema.Boolean,
  attempts: Schema.Array(Attempt),
  started_at: Schema.Date,
  event_id: Schema.String,
  event_type: Schema.String,
  event_data: Schema.Record(Schema.String, Schema.Unknown),
  event_created_at: Schema.Date,
})
export type Leased = typeof Leased.Type
const decodeLeased = Schema.decodeUnknownEffect(Schema.Array(Leased))
const encodeAttempt = Schema.encodeSync(Attempt)

/** How an attempt ended; `error` is a short stable word where no status arrived. */
export interface Outcome {
  readonly durationMs: number
  readonly statusCode: number | null
  readonly error: string | null
}

/** Attempts under way in this process by Webhook. */
export type Taken = ReadonlyMap<string, { readonly first: number; readonly retry: number }>

/** Leases what is due and has a place: first attempts in the order of their Events, then retries by due time. */
export const lease = (
  sql: Sql,
  identityId: string,
  taken: Taken,
  now: Date,
): Effect.Effect<ReadonlyArray<Leased>, SqlError.SqlError> => {
  const busy = [...taken]
  const due = sql`webhook_id = w.id and attempt_started_at is null and next_attempt_at <= ${now}`
  return sql`
    with busy as (
      select * from unnest(
        ${busy.map(([id]) => id)}::uuid[], ${busy.map(([, n]) => n.first)}::int[], ${busy.map(([, n]) => n.retry)}::int[]
      ) as busy (webhook_id, first, retry)
    ),
    due as materialized (
      select d.id, d.first from webhook w
      left join busy on busy.webhook_id = w.id
      cross join lateral (
        (select id, true as first from delivery where ${due} and status = 'queued'
         order by id limit greatest(0, ${placesPerWebhook.first} - coalesce(busy.first, 0)))
        union all
        (select id, false as first from delivery where ${due} and status = 'retrying'
         order by next_attempt_at limit greatest(0, ${placesPerWebhook.retry} - coalesce(busy.retry, 0)))
      ) d
      where w.identity_id = ${identityId}
    ),
    leased as (
      update delivery d
      set attempt_started_at = ${now}, next_attempt_at = ${new Date(now.getTime() + Timing.leaseMillis)}
      from due where d.id = due.id and d.attempt_started_at is null
      returning d.id, d.webhook_id, d.event_id, d.event_type, d.replay, d.attempts, due.first
    )
    select l.*, w.url, ${now}::timestamptz as started_at, e.data as event_data, e.created_at as event_created_at
    from leased l join webhook w on w.id = l.webhook_id join event e on e.id = l.event_id
    order by l.id`.pipe(Effect.flatMap((rows) => Effect.orDie(decodeLeased(rows))))
}

/** When the next delivery of the Identity is due; null when none waits. Leased ones count by the end of their lease. */
export const nextDue = (sql: Sql, identityId: string): Effect.Effect<Date | null, SqlError.SqlError> =>
  sql<{ due: Date | null }>`
    select min(next_attempt_at) as due from delivery where identity_id = ${identityId} and next_attempt_at is not null
  `.pipe(Effect.map(([row]) => row?.due ?? null))

/**
 * Records how the attempt ended and, by the table of waits, when the next is due. After the seventh failure the
 * delivery has failed and `webhook.failed` is raised, though not for the Webhook that failed.
 */
export const record = Effect.fnUntraced(function* (
  sql: Sql,
  identity: { readonly id: string; readonly orgId: string; readonly handle: string },
  delivery: Leased,
  outcome: Outcome,
  now: Date,
) {
  const attempt: Attempt = {
    number: delivery.attempts.length + 1,
    started_at: delivery.started_at,
    duration_ms: outcome.durationMs,
    status_code: outcome.statusCode,
    error: outcome.error,
  }
  const delivered = outcome.statusCode !== null && outcome.statusCode >= 200 && outcome.statusCode < 300
  const next = delivered ? undefined : nextAttemptAt(attempt.number, delivery.started_at)
  const status = delivered ? "delivered" : next === undefined ? "failed" : "retrying"
  const recorded = sql`
    recorded as (
      update delivery
      set status = ${status}, attempts = attempts || ${JSON.stringify([encodeAttempt(attempt)])}::jsonb,
          attempt_started_at = null, next_attempt_at = ${next ?? null}::timestamptz
      where id = ${delivery.id} and attempt_started_at = ${delivery.started_at}
      returning id
    )`
  // A failed delivery of `webhook.failed` raises none: two dead Webhooks would keep each other busy for ever.
  if (status !== "failed" || delivery.event_type === "webhook.failed") {
    yield* sql`with ${recorded} select 1 from recorded`
    return
  }
  yield* sql`with ${recorded}, ${raiseForIdentity(
    sql,
    "recorded",
    {
      eventId: yield* makeUuidV7,
      type: "webhook.failed",
      org: identity.orgId,
      identity,
      data: failureData(delivery, attempt),
      at: now,
    },
    delivery.webhook_id,
  )} select 1 from recorded`
})

const failureData = (delivery: Leased, attempt: Attempt) => ({
  webhook_id: publicId("wh_", delivery.webhook_id),
  delivery_id: publicId("dlv_", delivery.id),
  event_id: publicId("evt_", delivery.event_id),
  event_type: delivery.event_type,
  attempts: attemptsInAll,
  status_code: attempt.status_code,
  error: attempt.error,
})

/** Attempts whose process died: their leases have run out. They count as attempts, since the target may have seen them. */
export const abandoned = (
  sql: Sql,
  identityId: string,
  now: Date,
): Effect.Effect<ReadonlyArray<Leased>, SqlError.SqlError> =>
  sql`
    select d.id, d.webhook_id, d.event_id, d.event_type, d.replay, d.attempts, w.url, d.status = 'queued' as first,
           d.attempt_started_at as started_at, e.data as event_data, e.created_at as event_created_at
    from delivery d join webhook w on w.id = d.webhook_id join event e on e.id = d.event_id
    where d.identity_id = ${identityId} and d.attempt_started_at is not null and d.next_attempt_at <= ${now}
    limit 100`.pipe(Effect.flatMap((rows) => Effect.orDie(decodeLeased(rows))))
