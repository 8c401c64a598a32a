/**
 * The outbox as rows: a message for the recipients of one domain. A row carries its own next attempt, so a restart forgets
 * nothing. An attempt leases the row (`attempt_started_at`, with `next_attempt_at` ahead) and renews the lease while it
 * lasts; only its holder records what came of it. The lease is also the fence: a process that was frozen records nothing
 * once another has leased the row. What a crash leaves leased is tried again when the lease runs out, with the same bytes.
 */
import { toPublic } from "@svc/domain/Ids"
import { system } from "@svc/domain/account/By"
import { Effect } from "effect"
import { raise } from "../../events/Raise.ts"
import type { Sql } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import type { Backlog } from "../../work/Source.ts"
import type { Outcome } from "./MailTransport.ts"
import * as Replies from "./Replies.ts"
import { suppressed } from "./Suppression.ts"

/** A row whose attempt is ours to make. */
export interface Leased {
  readonly id: string
  readonly message_id: string
  readonly domain: string
  /** Attempts before this one. */
  readonly attempts: number
  readonly started_at: Date
  /** Those still to be handed over; none where all have bounced meanwhile. */
  readonly addresses: ReadonlyArray<string>
  /** Bytes of the message. */
  readonly size: number
  /** The same bytes of a body that fits an answer of the store; null where it is read in slices. */
  readonly raw: Uint8Array | null
}

interface Owner {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

/** Read with the lease up to this size (bytes). */
const inOneRead = 1024 * 1024

/** Whether a row waits for an attempt of ours: not while outgoing mail is stopped, nor of an Identity that is going. */
const waiting = (sql: Sql) => sql`exists (
  select from mailbox m join identity i on i.id = m.identity_id
  where m.identity_id = o.identity_id and m.stopped_at is null and i.status = 'ready')`

/** Leases what is due, oldest first, `atMost` rows. */
export const lease = (sql: Sql, identityId: string, now: Date, atMost: number) =>
  sql<Leased>`
    with due as materialized (
      select o.id from outbox o
      where o.identity_id = ${identityId} and o.next_attempt_at <= ${now} and ${waiting(sql)}
      order by o.next_attempt_at, o.id limit ${atMost} for update of o skip locked
    ),
    leased as (
      update outbox o
      set attempts = o.attempts + 1, attempt_started_at = ${now}, held = null,
          next_attempt_at = ${new Date(now.getTime() + Timing.outboxLeaseMillis)}
      from due where due.id = o.id
      returning o.id, o.message_id, o.domain, o.attempts - 1 as attempts, o.attempt_started_at as started_at
    )
    select l.*, length(c.raw) as size, case when length(c.raw) <= ${inOneRead} then c.raw end as raw,
           array(select r.address from outgoing_recipient r
                 where r.message_id = l.message_id and r.outbox_id = l.id and r.status in ('queued', 'deferred')
                 order by r.address) as addresses
    from leased l join message_content c on c.message_id = l.message_id order by l.id`

/** The lease goes on; answers whether it is still ours. */
export const renew = (sql: Sql, { id, started_at }: Leased, now: Date) =>
  Effect.map(
    sql`update outbox set next_attempt_at = ${new Date(now.getTime() + Timing.outboxLeaseMillis)}
        where id = ${id} and attempt_started_at = ${started_at} returning 1`,
    (rows) => rows.length > 0,
  )

/** When the next row of the Identity is due; null when none waits. Leased ones count by the end of their lease. */
export const nextDue = (sql: Sql, identityId: string) =>
  Effect.map(
    sql<{ due: Date | null }>`
      select min(o.next_attempt_at) as due from outbox o where o.identity_id = ${identityId} and ${waiting(sql)}`,
    ([row]) => row?.due ?? null,
  )

export const overdue: Backlog["overdue"] = (sql, late, atMost) =>
  Effect.map(
    sql<{ canonical: string }>`
      select i.canonical from (
        select o.identity_id, min(o.next_attempt_at) as due from outbox o
        where o.next_attempt_at <= ${late} and ${waiting(sql)} group by o.identity_id order by due limit ${atMost}
      ) d join identity i on i.id = d.identity_id order by d.due`,
    (rows) => rows.map(({ canonical }) => canonical),
  )

/** The attempt was none: nothing was tried. The row is as it was before, due at `next`; `held` says why. */
export const giveBack = (sql: Sql, { id, started_at }: Leased, next: Date, held: string | null) =>
  sql`update outbox set attempts = attempts - 1, attempt_started_at = null, next_attempt_at = ${next}, held = ${held}
      where id = ${id} and attempt_started_at = ${started_at}`

/** An outcome as its recipient's row keeps it. */
interface Settled {
  readonly address: string
  readonly status: "sent" | "deferred" | "bounced"
  readonly hard: boolean
  readonly reply: Outcome["reply"]
}

const settledOf = (outcome: Outcome, isLast: boolean): Settled => {
  const { recipient: address, reply } = outcome
  if (outcome.state === "sent") return { address, status: "sent", hard: false, reply }
  if (outcome.state === "refused") return { address, status: "bounced", hard: Replies.isHard(reply), reply }
  return { address, status: isLast ? "bounced" : "deferred", hard: false, reply }
}

/**
 * Records what came of an attempt, for each recipient; nothing where the lease was lost. Those that were deferred are
 * tried again after the wait that is theirs, all others are settled. The last row to be settled says whether the message
 * was handed over for everybody. What bounces is told one Event each.
 */
export const record = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owner,
  leased: Leased,
  outcomes: ReadonlyArray<Outcome>,
  now: Date,
) {
  const wait = Timing.outboxWaitsMillis[leased.attempts]
  const settled = outcomes.filter(({ state }) => state !== "held").map((one) => settledOf(one, wait === undefined))
  const held = outcomes.some(({ state }) => state === "held")
  const open = held || settled.some(({ status }) => status === "deferred")
  const next = open ? new Date(now.getTime() + (wait ?? Timing.outboxHeldMillis)) : null
  const change = { sql, identity, at: now, by: system }
  const id = toPublic("msg_", leased.message_id)
  const [row] = yield* sql<{ queued: number }>`
    with held as (
      update outbox set attempt_started_at = null, next_attempt_at = ${next}::timestamptz
      where id = ${leased.id} and attempt_started_at = ${leased.started_at}
      returning id
    ),
    told as (
      update outgoing_recipient r set status = t.status, reply = t.reply, changed_at = ${now}::timestamptz
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
      set rows_left = g.rows_left - ${open ? 0 : 1}::int, failed = g.failed + (select count(*)::int from bounced),
          status = case when g.rows_left - ${open ? 0 : 1}::int <= 0 then 'done' else g.status end
      where g.message_id = ${leased.message_id} and exists (select from held)
      returning g.message_id, g.status, g.failed
    ),
    over as (
      select counted.message_id, m.summary, m.size from counted join message m on m.id = counted.message_id
      where counted.status = 'done' and counted.failed = 0 and ${!open}::bool
    ),
    ${suppressed(change, sql`select address, diagnostic, hard from bounced`)},
    ${raise(change, "over", "email.sent", {
      message_id: id,
      subject: sql`summary -> 'subject'`,
      snippet: sql`summary -> 'snippet'`,
      size: sql`size`,
      from: sql`summary -> 'from'`,
      to: sql`summary -> 'to'`,
      cc: sql`summary -> 'cc'`,
      bcc: sql`summary -> 'bcc'`,
      sent_at: now.toISOString(),
    })},
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
        bounced_at: now.toISOString(),
      },
      { as: "raised_bounced" },
    )}
    select (select count(*) from queued)::int + (select count(*) from queued_raised_bounced)::int as queued`
  return (row?.queued ?? 0) > 0
})
