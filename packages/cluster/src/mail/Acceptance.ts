/**
 * Taking messages into a Mailbox: what waits at the same time is one statement. Messages with their UIDs in the order in
 * which they came, the Mailbox's size, renewed Allowed Recipients, `email.received` and the deliveries it queues are one
 * commit; what became of each is told for each.
 *
 * A message leaves a mark under its transaction's key, which the gateway removes when its 250 has gone out. A message that
 * finds the mark of another is that transaction again, as far as anyone knows, and is not stored.
 */
import { toPublic } from "@svc/domain/Ids"
import { MailRefused, type ReceiptOfMail, type ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Effect, Exit } from "effect"
import type { SqlError } from "effect/sql"
import { commit, type FenceLost, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as Threading from "./Threading.ts"

/** Messages in one statement: as many as are worth a round trip, and far from what the driver takes. */
export const together = {
  most: 64,
  heaviest: { weight: 8 * 1024 * 1024, of: (mail: ReceivedMail) => (mail.content === null ? 0 : mail.size) },
}

type Outcome = Exit.Exit<ReceiptOfMail, MailRefused>

const stored: Outcome = Exit.succeed({ repeated: false })
const repeated: Outcome = Exit.succeed({ repeated: true })
const full: Outcome = Exit.fail(new MailRefused({ reason: "full" }))

/** Answers what became of each message, in their order. */
export const receive = Effect.fnUntraced(function* (
  write: Write,
  mails: ReadonlyArray<ReceivedMail>,
  quotaBytes: number,
): Effect.fn.Return<ReadonlyArray<Outcome>, SqlError.SqlError | FenceLost> {
  const outcomes = new Map<ReceivedMail, Outcome>()
  let left = mails
  while (left.length > 0) {
    const group = left.slice(0, independent(left))
    const row = yield* store(write, group, quotaBytes)
    const known = new Set(row.known)
    for (const id of row.stored) known.add(id)
    const again: Array<ReceivedMail> = []
    for (const mail of group) {
      if (known.has(mail.message_id)) outcomes.set(mail, stored)
      else if (row.repeated.includes(mail.message_id)) outcomes.set(mail, repeated)
      // One that did not fit beside those before it may fit beside those that were stored.
      else if (BigInt(row.used) + BigInt(mail.size) <= BigInt(quotaBytes)) again.push(mail)
      else outcomes.set(mail, full)
    }
    left = [...again, ...left.slice(group.length)]
  }
  return mails.map((mail) => outcomes.get(mail)!)
})

const keyOf = (mail: ReceivedMail) => (mail.key === undefined ? mail.message_id : Buffer.from(mail.key).toString("hex"))

/** How many of the messages, from the first one on, say nothing of one another: a statement does not see its own rows. */
const independent = (mails: ReadonlyArray<ReceivedMail>): number => {
  const keys = new Set<string>()
  const depends = Threading.dependence()
  const end = mails.findIndex((mail) => {
    if (depends(mail) || keys.has(keyOf(mail))) return true
    keys.add(keyOf(mail))
    return false
  })
  return end < 0 ? mails.length : end
}

/** Members of a message that lists show; the rest are columns. */
const summaryOf = (mail: ReceivedMail) => ({
  from: mail.from,
  to: mail.to,
  cc: mail.cc,
  bcc: mail.bcc,
  reply_to: mail.reply_to,
  subject: mail.subject,
  snippet: mail.snippet,
  in_reply_to: mail.in_reply_to,
  references: mail.references,
  origin: mail.origin,
  attachments: mail.attachments,
})

/** Whom a message renews as an Allowed Recipient: only who proved to have sent it, and never for a bounce. */
const renewedBy = (mail: ReceivedMail) =>
  mail.origin.verdict === "verified" && mail.from !== null && mail.envelope_from !== ""
    ? mail.from.address.toLowerCase()
    : null

const noBytes = new Uint8Array(0)

/**
 * CTE `incoming`: a row for each message, `n` its place. Bodies travel as arrays of their own types; an array has no
 * nulls, since the driver could not tell the type of one that has nothing else, so which are missing is said beside them.
 */
const incoming = (sql: Sql, mails: ReadonlyArray<ReceivedMail>) => {
  const rows = mails.map((mail) => ({
    id: mail.message_id,
    public_id: toPublic("msg_", mail.message_id),
    tag: mail.tag,
    message_id: mail.message_id_header,
    envelope_from: mail.envelope_from,
    recipient: mail.recipient,
    size: mail.size,
    summary: summaryOf(mail),
    received_at: mail.received_at.toISOString(),
    ...Threading.namesOf(mail),
    renews: renewedBy(mail),
    headers: mail.content?.headers ?? null,
    has_text: mail.content !== null && mail.content.text !== null,
    has_html: mail.content !== null && mail.content.html !== null,
    has_key: mail.key !== undefined,
  }))
  return sql`
    incoming as materialized (
      select * from rows from (
        jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as (
          id uuid, public_id text, tag text, message_id text, envelope_from text, recipient text, size int, summary jsonb,
          received_at timestamptz, related text[], subject_key text, rejoins text, renews text, headers jsonb, has_text bool, has_html bool, has_key bool),
        unnest(${mails.map((mail) => mail.key ?? noBytes)}::bytea[]),
        unnest(${mails.map((mail) => mail.sha256)}::bytea[]),
        unnest(${mails.map((mail) => mail.content?.raw ?? noBytes)}::bytea[]),
        unnest(${mails.map((mail) => mail.content?.text ?? "")}::text[]),
        unnest(${mails.map((mail) => mail.content?.html ?? "")}::text[]),
        unnest(${mails.map((mail) => mail.content?.search_text ?? "")}::text[])
      ) with ordinality as i (
        id, public_id, tag, message_id, envelope_from, recipient, size, summary, received_at, related, subject_key,
        rejoins, renews, headers,
        has_text, has_html, has_key, key, sha256, raw, text, html, search_text, n)
    )`
}

interface Row {
  readonly stored: ReadonlyArray<string>
  /** Stored by this very message, sent to the actor before. */
  readonly known: ReadonlyArray<string>
  readonly repeated: ReadonlyArray<string>
  /** Bytes in the Mailbox, those stored here among them. */
  readonly used: string
}

const store = (write: Write, mails: ReadonlyArray<ReceivedMail>, quotaBytes: number) => {
  const { sql, identity, at } = write
  const box = sql`mailbox m where m.identity_id = ${identity.id}::uuid`
  return commit<Row>(
    write,
    sql`
    ${incoming(sql, mails)},
    marks as materialized (
      select i.n, i.id, mark.message_id from incoming i join unanswered_mail mark on mark.key = i.key
      where i.has_key and mark.received_at > ${at}::timestamptz - ${Timing.mailRepeat}::interval
    ),
    fitting as materialized (
      select new.n, new.size, row_number() over (order by new.n) - 1 as place
      from (
        select n, size, sum(size) over (order by n) as upto from incoming i
        where not exists (select from marks where marks.n = i.n)
      ) new, ${box} and m.bytes_used + new.upto <= ${quotaBytes}::bigint and exists (select from fence)
    ),
    box as (
      update mailbox
      set uid_next = uid_next + added.count, bytes_used = bytes_used + added.bytes, modseq = modseq + 1
      from (select count(*)::int as count, sum(size)::bigint as bytes from fitting) added
      where identity_id = ${identity.id}::uuid and added.count > 0
      returning uid_next - added.count as first, modseq
    ),
    arrived as materialized (
      select i.*, box.first + fitting.place::int as uid, box.modseq from fitting join incoming i on i.n = fitting.n cross join box
      order by i.n
    ),
    threaded as materialized (
      select threading.*, ${Threading.threadOf(sql, identity.id)} as thread_id from arrived threading
    ),
    stored as (
      insert into message (id, identity_id, uid, direction, thread_id, subject_key, tag, message_id, envelope_from,
                           recipient, sha256, size, summary, received_at, modseq)
      select id, ${identity.id}::uuid, uid, 'inbound', thread_id, subject_key, tag, message_id, envelope_from,
             recipient, sha256, size, summary, received_at, modseq
      from threaded
    ),
    ${Threading.noted(sql, identity.id, "threaded")},
    marked as (
      insert into unanswered_mail (key, message_id, received_at)
      select key, id, received_at from arrived where has_key
      on conflict (key) do update set message_id = excluded.message_id, received_at = excluded.received_at
    ),
    contents as (
      insert into message_content (message_id, identity_id, raw, text, html, headers, search_text, created_at)
      select id, ${identity.id}::uuid, raw, case when has_text then text end, case when has_html then html end, headers,
             search_text, received_at
      from arrived where headers is not null
      on conflict (message_id) do nothing
    ),
    -- What was stored ahead is searched from now on.
    claimed as (
      update message_content c set identity_id = ${identity.id}::uuid
      from arrived where arrived.headers is null and c.message_id = arrived.id
    ),
    renewed as (
      insert into allowed_recipient (identity_id, address, reason, created_at, expires_at)
      select ${identity.id}::uuid, renews, 'inbound', max(received_at), max(received_at) + ${Timing.inboundLapse}::interval
      from arrived where renews is not null group by renews
      on conflict (identity_id, address) do update set expires_at = excluded.expires_at
      where allowed_recipient.reason = 'inbound'
    ),
    ${raise(write, "arrived", "email.received", {
      message_id: sql`public_id`,
      from: sql`summary -> 'from'`,
      to: sql`summary -> 'to'`,
      subject: sql`summary -> 'subject'`,
      snippet: sql`summary -> 'snippet'`,
      tag: sql`tag`,
      origin: sql`summary -> 'origin'`,
      size: sql`size`,
      received_at: sql`to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
    })}`,
    {
      columns: sql`
        array(select id::text from arrived) as stored,
        array(select id::text from marks where message_id = id) as known,
        array(select id::text from marks where message_id <> id) as repeated,
        ((select m.bytes_used from ${box}) + coalesce((select sum(size) from arrived), 0))::text as used`,
      raises: true,
    },
  )
}
