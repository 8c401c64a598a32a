/**
 * Counts what Identities do, per hour, in the memory of the process where it happens. Every few seconds one statement
 * adds the counts to the store, outside of any commit that a caller waits for. A process that stops writes its counts; a
 * process that crashes loses those of the last seconds. A statement with an unknown outcome is not repeated, so nothing
 * is ever counted twice.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import { isTransient, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/**
 * The kinds of counts. `delivery` is an attempt to deliver to a Webhook, `tunnel_http` a request through the Tunnel that got
 * a response. `mailbox` is the largest size of the Mailbox, not a sum.
 */
export type UsageKind =
  | "mail_received"
  | "mail_sent"
  | "mail_refused"
  | "delivery"
  | "tunnel"
  | "tunnel_http"
  | "call"
  | "mailbox"

/** The Identity whose activity is counted, or the Org if the activity concerns no Identity. */
export type Counted = { readonly identity: string } | { readonly org: string }

export interface Amount {
  readonly count: number
  readonly failed?: number
  /** The bucket of the duration (`bucketOf`); absent if the duration was not measured. */
  readonly bucket?: number
  readonly bytes_in?: number
  readonly bytes_out?: number
  readonly webhook?: string
}

interface Sum {
  readonly identity_id: string | null
  readonly org_id: string | null
  readonly hour: Date
  readonly kind: UsageKind
  readonly webhook_id: string | null
  readonly bucket: number | null
  count: number
  failed: number
  bytes_in: number
  bytes_out: number
}

/** Buckets per doubling of a duration: a duration is known to within 9%. */
const bucketsPerDoubling = 4

/** Returns the bucket of a duration in milliseconds. Everything below a millisecond is in the first one. */
export const bucketOf = (millis: number): number => Math.round(bucketsPerDoubling * Math.log2(Math.max(1, millis)))

/** Returns the duration in milliseconds at the middle of a bucket. */
export const millisOf = (bucket: number): number => Math.round(2 ** (bucket / bucketsPerDoubling))

/** Maximum number of sums in memory; further Identities are not counted until the next statement. */
const sumsAtMost = 20_000
const hourMillis = 3_600_000

/**
 * Adds the sums to the rows of Identities and of their Org. Rows of deleted Identities are skipped. The order is always
 * the same, so that two processes never deadlock.
 */
const written = (sql: Sql, sums: ReadonlyArray<Sum>) => sql`
  with counted as materialized (
    select coalesce(i.org_id, o.id) as org_id, i.id as identity_id, c.hour, c.kind, c.webhook_id, c.bucket, c.count, c.failed,
           c.bytes_in, c.bytes_out
    from jsonb_to_recordset(${JSON.stringify(sums)}::jsonb) as c (
      identity_id uuid, org_id uuid, hour timestamptz, kind text, webhook_id uuid, bucket smallint, count bigint, failed bigint,
      bytes_in bigint, bytes_out bigint)
    left join identity i on i.id = c.identity_id
    left join org o on o.id = c.org_id
    where coalesce(i.id, o.id) is not null
  )
  insert into usage_hour as u (org_id, identity_id, hour, kind, webhook_id, bucket, count, failed, bytes_in, bytes_out)
  select * from (
    select * from counted where identity_id is not null
    union all
    select org_id, null, hour, kind, null, bucket, sum(count)::bigint, sum(failed)::bigint, sum(bytes_in)::bigint,
           sum(bytes_out)::bigint
    from counted where kind <> 'mailbox' group by org_id, hour, kind, bucket
  ) as sums
  order by 1, 2, 3, 4, 5, 6
  on conflict (org_id, identity_id, hour, kind, webhook_id, bucket) do update
  set count = case when u.kind = 'mailbox' then greatest(u.count, excluded.count) else u.count + excluded.count end,
      failed = u.failed + excluded.failed, bytes_in = u.bytes_in + excluded.bytes_in, bytes_out = u.bytes_out + excluded.bytes_out`

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const clock = yield* Clock.Clock
  let sums = new Map<string, Sum>()
  /** Open while something is counted that is not stored, so that an idle process does nothing. */
  const pending = yield* Latch.make(false)

  const flush = Effect.suspend(() => {
    if (sums.size === 0) return Effect.void
    const taken = [...sums.values()]
    sums = new Map()
    pending.closeUnsafe()
    return written(sql, taken).pipe(
      // The statement fails as a whole if an Identity was deleted while it ran; the next one skips that Identity.
      Effect.retry({ times: 2, while: (error) => !isTransient(error) }),
      Effect.asVoid,
    )
  })
  const attempt = flush.pipe(
    Effect.tapCause((cause) => Effect.logWarning("Counts of usage were not stored", cause)),
    Effect.ignoreCause,
    Effect.uninterruptible,
  )
  // Registered before the fiber: a process that stops ends the fiber first and then writes what is left.
  yield* Effect.addFinalizer(() => Effect.ignoreCause(Effect.timeout(flush, Timing.settle)))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(pending.await, Effect.andThen(Effect.sleep(Timing.usageFlush), attempt))),
  )

  return {
    /** Counts in memory. */
    add: (of: Counted, kind: UsageKind, amount: Amount): void => {
      const hour = Math.floor(clock.currentTimeMillisUnsafe() / hourMillis)
      const identity = "identity" in of ? of.identity : null
      const org = "org" in of ? of.org : null
      const key = `${hour}${kind}${identity ?? org}${amount.webhook ?? ""}/${amount.bucket ?? ""}`
      let sum = sums.get(key)
      if (sum === undefined) {
        if (sums.size >= sumsAtMost) return
        sum = {
          identity_id: identity,
          org_id: org,
          hour: new Date(hour * hourMillis),
          kind,
          webhook_id: amount.webhook ?? null,
          bucket: amount.bucket ?? null,
          count: 0,
          failed: 0,
          bytes_in: 0,
          bytes_out: 0,
        }
        sums.set(key, sum)
        pending.openUnsafe()
      }
      sum.count = kind === "mailbox" ? Math.max(sum.count, amount.count) : sum.count + amount.count
      sum.failed += amount.failed ?? 0
      sum.bytes_in += amount.bytes_in ?? 0
      sum.bytes_out += amount.bytes_out ?? 0
    },
    /** Writes the counts now. */
    flush: attempt,
  }
})

export class UsageCounters extends Context.Service<UsageCounters, Effect.Success<typeof make>>()(
  "@svc/cluster/usage/UsageCounters",
) {
  static readonly layer = Layer.effect(UsageCounters, make)
}
