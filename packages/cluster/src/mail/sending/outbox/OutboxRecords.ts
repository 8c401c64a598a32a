/**
 * Records outcomes of attempts, if the lease is still held. Attempts of all Identities in a process that end at the
 * same time share one statement. An attempt with a bounce has its own statement, since bounces are rare and write more.
 */
import { system } from "@svc/domain/account/Initiator"
import { toPublic } from "@svc/domain/Ids"
import { Effect, Exit } from "effect"
import { raise } from "../../../events/Raise.ts"
import type { Sql } from "../../../store/Database.ts"
import * as GroupCommit from "../../../store/GroupCommit.ts"
import { Timing } from "../../../Timing.ts"
import { isAddressRejected } from "../AddressRejection.ts"
import type { Outcome, SmtpReply } from "../MailTransport.ts"
import { suppressed } from "../Bounces.ts"

/** A row that this process has leased. */
export interface Leased {
  readonly id: string
  readonly message_id: string
  readonly domain: string
  /** Number of earlier attempts. */
  readonly attempts: number
  readonly started_at: Date
  /** Recipients without a final outcome; empty if all have bounced meanwhile. */
  readonly addresses: ReadonlyArray<string>
  /** Size of the message in bytes. */
  readonly size: number
  /** The message itself if it is small enough to be read with the lease; null if it is read in slices. */
  readonly raw: Uint8Array | null
}

/** The Identity that owns the row and gets its Events. */
interface Owner {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

/** An outcome as stored for a recipient. */
interface Settled {
  readonly address: string
  readonly status: "sent" | "deferred" | "bounced"
  readonly hard: boolean
  readonly reply: Omit<SmtpReply, "command" | "shared"> | null
}

/** A finished attempt. */
interface FinishedAttempt {
  readonly owner: Owner
  readonly leased: Leased
  readonly settled: ReadonlyArray<Settled>
  /** When the row is retried; null if all its recipients have a final outcome. */
  readonly next: Date | null
  readonly at: Date
}

const stored = ({ code, status, text, host }: SmtpReply) => ({ code, status, text, host })

const settledOf = (outcome: Outcome, isLast: boolean): Settled => {
  const { recipient: address } = outcome
  const reply = outcome.reply === null ? null : stored(outcome.reply)
  if (outcome.state === "sent") return { address, status: "sent", hard: false, reply }
  if (outcome.state === "refused")
    return { address, status: "bounced", hard: outcome.reply !== null && isAddressRejected(outcome.reply), reply }
  return { address, status: isLast ? "bounced" : "deferred", hard: false, reply }
}

/**
 * Converts the outcomes of an attempt: deferred recipients are retried after the next waiting time, all others are
 * final.
 */
const finished = (owner: Owner, leased: Leased, outcomes: ReadonlyArray<Outcome>, at: Date): FinishedAttempt => {
  const wait = Timing.outboxWaitsMillis[leased.attempts]
  const settled = outcomes.filter(({ state }) => state !== "held").map((one) => settledOf(one, wait === undefined))
  const isOpen = outcomes.some(({ state }) => state === "held") || settled.some(({ status }) => status === "deferred")
  const next = isOpen ? new Date(at.getTime() + (wait ?? Timing.outboxHeldMillis)) : null
  return { owner, leased, settled, next, at }
}

const isBounce = ({ status }: Settled) => status === "bounced"

/** The members of `email.sent` that are columns of its gate. */
const sentMembers = (sql: Sql) => ({
  subject: sql`summary -> 'subject'`,
  snippet: sql`summary -> 'snippet'`,
  size: sql`size`,
  from: sql`summary -> 'from'`,
  to: sql`summary -> 'to'`,
  cc: sql`summary -> 'cc'`,
  bcc: sql`summary -> 'bcc'`,
})

/**
 * Records one attempt with any outcome. The last row with a final outcome decides whether the message was sent to
 * everybody. Each bounce raises an Event. Returns whether Events queued deliveries.
 */
const recordOne = (sql: Sql) =>
  Effect.fnUntraced(function* ({ owner, leased, settled, next, at }: FinishedAttempt) {
    const isDone = next === null
    const change = { sql, identity: owner, at, by: system }
    const id = toPublic("msg_", leased.message_id)
    const [row] = yield* sql<{ queued: number }>`
    with held as (
      update outbox set attempt_started_at = null, next_attempt_at = ${next}::timestamptz
      where id = ${leased.id} and attempt_started_at = ${leased.started_at}
      returning id
    ),
    told as (
      update outgoing_recipient r set status = t.status, reply = t.reply, changed_at = ${at}::timestamptz
      from held, jsonb_to_recordset(${JSON.stringify(settled)}::jsonb) as t (address text, status text, hard bool, reply jsonb)
      where r.message_id = ${leased.message_id} and r.outbox_id = held.id and r.address = t.address
        and r.status in ('queued', 'deferred')
      returning r.address, r.status, r.reply, t.hard
    ),
    bounced as (
      select address, reply ->> 'status' as status, reply ->> 'text' as diagnostic, hard from told where status = 'bounced'
    ),
    counted as (
      update outgoing g
      set rows_left = g.rows_left - ${isDone ? 1 : 0}::int, failed = g.failed + (select count(*)::int from bounced),
          status = case when g.rows_left - ${isDone ? 1 : 0}::int <= 0 then 'done' else g.status end
      where g.message_id = ${leased.message_id} and exists (select from held)
      returning g.message_id, g.status, g.failed
    ),
    over as (
      select counted.message_id, m.summary, m.size from counted join message m on m.id = counted.message_id
      where counted.status = 'done' and counted.failed = 0 and ${isDone}::bool
    ),
    ${suppressed(change, sql`select address, diagnostic, hard from bounced`)},
    ${raise(change, "over", "email.sent", { message_id: id, ...sentMembers(sql), sent_at: at.toISOString() })},
    ${raise(
      change,
      "bounced",
      "email.bounced",
      {
        message_id: id,
        recipient: sql`address`,
        kind: sql`case when hard then 'hard' else 'soft' end`,
        status: sql`status`,
        diagnostic: sql`diagnostic`,
        bounced_at: at.toISOString(),
      },
      { as: "raised_bounced" },
    )}
    select (select count(*) from queued)::int + (select count(*) from queued_raised_bounced)::int as queued`
    return row!.queued > 0
  })

/**
 * Records several attempts without bounces, each of another message, since a statement can change the counter of a
 * message only once. Arrays contain no nulls, since the driver cannot infer the type of an all-null array.
 */
const recordSeveral = (sql: Sql, ended: ReadonlyArray<FinishedAttempt>) => {
  const people = ended.flatMap(({ leased, settled }) => settled.map((one) => ({ ...one, row: leased.id })))
  return Effect.map(
    sql<{ n: number }>`
    with ended as materialized (
      select * from unnest(
        ${ended.map(({ leased }) => leased.id)}::uuid[], ${ended.map(({ leased }) => leased.message_id)}::uuid[],
        ${ended.map(({ leased }) => leased.started_at.toISOString())}::timestamptz[],
        ${ended.map(({ next }) => next?.toISOString() ?? "")}::text[], ${ended.map(({ at }) => at.toISOString())}::timestamptz[],
        ${ended.map(({ owner }) => owner.id)}::uuid[], ${ended.map(({ owner }) => owner.orgId)}::uuid[],
        ${ended.map(({ owner }) => owner.handle)}::text[], ${ended.map(({ leased }) => toPublic("msg_", leased.message_id))}::text[]
      ) with ordinality as e (id, message_id, started_at, next, at, owner_id, org_id, owner_handle, public_id, n)
    ),
    held as (
      update outbox o set attempt_started_at = null, next_attempt_at = nullif(e.next, '')::timestamptz
      from ended e where o.id = e.id and o.attempt_started_at = e.started_at
      returning e.*
    ),
    told as (
      update outgoing_recipient r set status = t.status, reply = nullif(t.reply, 'null')::jsonb, changed_at = held.at
      from unnest(
        ${people.map(({ row }) => row)}::uuid[], ${people.map(({ address }) => address)}::text[],
        ${people.map(({ status }) => status)}::text[], ${people.map(({ reply }) => JSON.stringify(reply))}::text[]
      ) as t (row, address, status, reply) join held on held.id = t.row
      where r.message_id = held.message_id and r.outbox_id = held.id and r.address = t.address
        and r.status in ('queued', 'deferred')
    ),
    counted as (
      update outgoing g
      set rows_left = g.rows_left - 1, status = case when g.rows_left - 1 <= 0 then 'done' else g.status end
      from held where g.message_id = held.message_id and held.next = ''
      returning held.*, g.status, g.failed
    ),
    over as (
      select counted.*, m.summary, m.size from counted join message m on m.id = counted.message_id
      where counted.status = 'done' and counted.failed = 0
    ),
    ${raise(
      {
        sql,
        identity: { id: sql`owner_id`, handle: sql`owner_handle`, orgId: sql`org_id` },
        at: sql`at`,
        by: system,
      },
      "over",
      "email.sent",
      {
        message_id: sql`public_id`,
        ...sentMembers(sql),
        sent_at: sql`to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
      },
    )}
    select distinct ended.n::int as n from queued join ended on ended.owner_id = queued.identity_id`,
    (rows) => {
      const queued = new Set(rows.map(({ n }) => n - 1))
      return ended.map((_, index) => queued.has(index))
    },
  )
}

export const make = Effect.fnUntraced(function* (sql: Sql) {
  const one = recordOne(sql)
  const store = (ended: ReadonlyArray<FinishedAttempt>) =>
    Effect.map(
      ended.length === 1 ? Effect.map(one(ended[0]!), (queued) => [queued]) : recordSeveral(sql, ended),
      (queued) => queued.map((any) => Exit.succeed(any)),
    )
  // One statement at a time: two statements that lock the same messages in different orders would deadlock.
  const share = yield* GroupCommit.make(store, { atOnce: 1, most: 100, apart: ({ leased }) => leased.message_id })
  return (owner: Owner, leased: Leased, outcomes: ReadonlyArray<Outcome>, at: Date) => {
    const ended = finished(owner, leased, outcomes, at)
    return ended.settled.some(isBounce) ? one(ended) : share(ended)
  }
})
