/**
 * The outbox table: one row per message and recipient domain. A row stores when its next attempt is due, so a restart
 * loses nothing. An attempt leases the row (`attempt_started_at`, with `next_attempt_at` in the future) and renews the
 * lease while it runs. Only the holder of the lease records the outcome. The lease is also the fence: a process that
 * was frozen cannot record anything after another process has leased the row. Rows that a crash leaves leased are
 * retried with the same bytes when the lease expires.
 *
 * Since the lease is the fence, Identities of one process can share statements for leasing and recording.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { permitted } from "../../../actor/Permit.ts"
import { type Claim, FenceLost } from "../../../actor/Write.ts"
import * as Batcher from "../../../store/Batcher.ts"
import { type Sql, Writes } from "../../../store/Database.ts"
import { Timing } from "../../../Timing.ts"
import { lateIdentities } from "../../../work/LateIdentities.ts"
import * as OutboxRecords from "./OutboxRecords.ts"
import type { Leased } from "./OutboxRecords.ts"

/** Messages up to this size (bytes) are read with the lease; one statement may return many. */
const inOneRead = 64 * 1024

/** A request for the due rows of one Identity. */
interface LeaseRequest {
  readonly identityId: string
  readonly now: Date
  readonly atMost: number
  /** The actor whose permit is renewed if a row is leased; the lease then requires its fence. */
  readonly renews?: Claim
}

/** The leased rows. If no row was due, `due` is when the next row is due, or null if no row waits. */
export interface Lease {
  readonly leased: ReadonlyArray<Leased>
  readonly due: Date | null
}

type Row = { readonly requested: number; readonly due: Date | null; readonly lost: boolean } & (
  | Leased
  | { readonly id: null }
)
const isLeased = (row: Row): row is Row & Leased => row.id !== null

/** The lease, or undefined if the fence was lost. */
type Leasing = Lease | undefined

/**
 * Leases the due rows of each Identity, oldest first. Identities that are stopped or being deleted have no due rows. A
 * permit is only renewed if a row was leased, since a check that finds nothing should write nothing.
 */
const lease = (sql: Sql) => (wanted: ReadonlyArray<LeaseRequest>) =>
  Effect.map(
    sql<Row>`
    with requested as (
      select requested.* from unnest(
        ${wanted.map(({ identityId }) => identityId)}::uuid[], ${wanted.map(({ now }) => now.toISOString())}::timestamptz[],
        ${wanted.map(({ atMost }) => atMost)}::int[], ${wanted.map(({ renews }) => renews?.kind ?? "")}::text[],
        ${wanted.map(({ renews }) => renews?.id ?? "")}::text[], ${wanted.map(({ renews }) => renews?.epoch ?? 0)}::int[]
      ) with ordinality as requested (identity_id, now, at_most, kind, id, epoch, n)
      cross join lateral (select stopped_at from mailbox where identity_id = requested.identity_id offset 0) m
      cross join lateral (select status from identity where id = requested.identity_id offset 0) i
      where m.stopped_at is null and i.status = 'ready'
    ),
    due as materialized (
      select o.id, requested.n, requested.now, requested.epoch = 0 as unfenced from requested cross join lateral (
        select o.id from outbox o where o.identity_id = requested.identity_id and o.next_attempt_at <= requested.now
        order by o.next_attempt_at, o.id limit requested.at_most for update skip locked
      ) o
    ),
    fence as materialized (
      select requested.n, actor.kind, actor.id, actor.epoch from requested join actor using (kind, id, epoch)
      where exists (select from due where due.n = requested.n) for share of actor
    ),
    ${permitted(sql, sql`select kind, id, epoch from fence`)},
    leased as (
      update outbox o
      set attempts = o.attempts + 1, attempt_started_at = due.now, held = null,
          next_attempt_at = due.now + make_interval(secs => ${Timing.outboxLeaseMillis / 1000})
      from due where due.id = o.id and (due.unfenced or exists (select from fence where fence.n = due.n))
      returning o.id, o.message_id, o.domain, o.attempts - 1 as attempts, o.attempt_started_at as started_at, due.n
    )
    select requested.n::int as requested, l.id, l.message_id, l.domain, l.attempts, l.started_at,
           length(c.raw) as size, case when length(c.raw) <= ${inOneRead} then c.raw end as raw,
           array(select r.address from outgoing_recipient r
                 where r.message_id = l.message_id and r.outbox_id = l.id and r.status in ('queued', 'deferred')
                 order by r.address) as addresses,
           l.id is null and requested.epoch > 0 and exists (select from due where due.n = requested.n) as lost,
           case when l.id is null then (
             select min(o.next_attempt_at) from outbox o where o.identity_id = requested.identity_id
           ) end as due
    from requested left join (leased l join message_content c on c.message_id = l.message_id) on l.n = requested.n
    order by requested.n, l.id`,
    (rows) => {
      const byPlace = Map.groupBy(rows, ({ requested }) => requested - 1)
      return wanted.map((_, index): Leasing => {
        const found = byPlace.get(index) ?? []
        if (found[0]?.lost === true) return undefined
        return { leased: found.filter(isLeased), due: found[0]?.due ?? null }
      })
    },
  )

/**
 * Renews the leases and returns those that another attempt holds now. Both may be of this process, so a lease is more than
 * the id of its row.
 */
const renew = (sql: Sql, leased: ReadonlyArray<Leased>, now: Date) =>
  Effect.map(
    sql<{ n: number }>`
      update outbox o set next_attempt_at = ${new Date(now.getTime() + Timing.outboxLeaseMillis)}::timestamptz
      from unnest(
        ${leased.map(({ id }) => id)}::uuid[], ${leased.map(({ started_at }) => started_at.toISOString())}::timestamptz[]
      ) with ordinality as ours (id, started_at, n)
      where o.id = ours.id and o.attempt_started_at = ours.started_at returning ours.n::int as n`,
    (rows) => {
      const renewed = new Set(rows.map(({ n }) => n))
      return leased.filter((_, index) => !renewed.has(index + 1))
    },
  )

/** Identities that are stopped or being deleted have no due rows. */
export const overdue = lateIdentities(
  "outbox",
  (sql) =>
    sql`i.status = 'ready' and exists (select from mailbox m where m.identity_id = i.id and m.stopped_at is null)`,
)

/** Returns a row whose attempt sent nothing: it is unchanged and due at `next`; `held` is the reason. */
const giveBack = (sql: Sql, { id, started_at }: Leased, next: Date, held: string | null) =>
  sql`update outbox set attempts = attempts - 1, attempt_started_at = null, next_attempt_at = ${next}, held = ${held}
      where id = ${id} and attempt_started_at = ${started_at}`

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const together = yield* Batcher.make(lease(sql), { ...Batcher.usual, most: 32 })
  return {
    /** Leases rows. If the request renews a permit and rows were leased, the permit was granted. */
    lease: (wanted: LeaseRequest): Effect.Effect<Lease, SqlError.SqlError | FenceLost> =>
      Effect.flatMap(together(wanted), (found) =>
        found === undefined ? Effect.fail(new FenceLost()) : Effect.succeed(found),
      ),
    /**
     * Records the outcome of an attempt for each recipient, or nothing if the lease was lost. Returns whether its
     * Events queued deliveries.
     */
    record: yield* OutboxRecords.make(sql),
    renew: (leased: ReadonlyArray<Leased>, now: Date) => renew(sql, leased, now),
    giveBack: (leased: Leased, next: Date, held: string | null) => giveBack(sql, leased, next, held),
  }
})

export class Outbox extends Context.Service<Outbox, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/sending/outbox/Outbox",
) {
  static readonly layer = Layer.effect(Outbox, make)
}
