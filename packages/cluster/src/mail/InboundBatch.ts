/**
 * Group commit of inbound messages for all Mailboxes whose actors run in this process. Concurrent messages share one
 * statement. The messages with their UIDs, the size of their Mailbox, renewed Allowed Recipients, `email.received`
 * Events and their queued deliveries are one commit. Each actor proves its own ownership: if one lost it, none of its
 * messages are stored, and the other Mailboxes are not affected.
 */
import { system } from "@svc/domain/account/Initiator"
import { toPublic } from "@svc/domain/Ids"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Context, Effect, Exit, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { commitTogether, type FenceLost, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import { type Sql, Writes } from "../store/Database.ts"
import * as GroupCommit from "../store/GroupCommit.ts"
import { Timing } from "../Timing.ts"
import { UsageCounters } from "../usage/UsageCounters.ts"
import { placed } from "./folders/FolderPlacement.ts"
import { RecentTexts } from "./search/RecentTexts.ts"
import { summaryOf } from "./Summary.ts"
import * as Threading from "./Threading.ts"

/** Messages of one Mailbox that do not depend on each other. */
export interface Group {
  readonly write: Write
  readonly mails: ReadonlyArray<ReceivedMail>
  /** The capacity of the Mailbox in bytes. */
  readonly quotaBytes: number
}

/** Returns the bytes of a message that are part of the statement. */
export const weightOf = (mail: ReceivedMail) => (mail.content === null ? 0 : mail.size)

/** Limits of one statement in bytes and Mailboxes, and of concurrent statements. */
const together = {
  atOnce: 2,
  // Starting a second statement costs as much as storing several messages.
  beside: { least: 16, millis: Timing.arrivalsBesideMillis },
  most: 32,
  heaviest: {
    weight: 8 * 1024 * 1024,
    of: ({ mails }: Group) => mails.reduce((sum, mail) => sum + weightOf(mail), 0),
  },
}

/**
 * Returns the address that a message renews as an Allowed Recipient: its author, only if verified, and never for a
 * bounce. The address is normalized like recipients are. Addresses that cannot receive mail are excluded, because some
 * non-ASCII letters lowercase to the letters of another address.
 */
const renewedBy = (mail: ReceivedMail) => {
  if (mail.origin.verdict !== "verified" || mail.from === null || mail.envelope_from === "") return null
  const parsed = AddrSpec.parse(mail.from.address)
  return parsed._tag === "Address" ? AddrSpec.sameAs(parsed.address) : null
}

const noBytes = new Uint8Array(0)

/**
 * CTE `incoming`: one row per message whose actor still owns the Mailbox; `n` is its position and `box` the position of
 * its Mailbox. Bodies are sent as typed arrays. An array contains no nulls, since the driver cannot infer the type of
 * an all-null array; separate columns say which bodies are missing. No other CTE includes the bodies, since each would
 * copy them.
 */
const incoming = (sql: Sql, groups: ReadonlyArray<Group>) => {
  const boxes = groups.map(({ write, quotaBytes }, index) => ({
    box: index + 1,
    identity_id: write.identity.id,
    org_id: write.identity.orgId,
    handle: write.identity.handle,
    quota: quotaBytes,
    written_at: write.at.toISOString(),
  }))
  const mails = groups.flatMap((group) => group.mails)
  const rows = groups.flatMap((group, index) =>
    group.mails.map((mail) => ({
      box: index + 1,
      id: mail.message_id,
      public_id: toPublic("msg_", mail.message_id),
      tag: mail.tag,
      tags: mail.tags ?? (mail.tag === null ? [] : [mail.tag]),
      message_id: mail.message_id_header,
      envelope_from: mail.envelope_from,
      recipient: mail.recipient,
      size: mail.size,
      summary: summaryOf(mail, mail.origin),
      received_at: mail.received_at.toISOString(),
      ...Threading.threadKeys(mail),
      renews: renewedBy(mail),
      headers: mail.content?.headers ?? null,
      has_text: mail.content !== null && mail.content.text !== null,
      has_html: mail.content !== null && mail.content.html !== null,
      has_key: mail.key !== undefined,
    })),
  )
  return sql`
    boxes as materialized (
      select told.* from fence join jsonb_to_recordset(${JSON.stringify(boxes)}::jsonb) as told (
        box int, identity_id uuid, org_id uuid, handle text, quota bigint, written_at timestamptz) on told.box = fence.n
    ),
    incoming as materialized (
      select i.*, boxes.identity_id, boxes.org_id, boxes.handle, boxes.quota, boxes.written_at from rows from (
        jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as (
          box int, id uuid, public_id text, tag text, tags text[], message_id text, envelope_from text, recipient text, size int, summary jsonb,
          received_at timestamptz, related text[], subject_key text, rejoins text, renews text, headers jsonb, has_text bool, has_html bool, has_key bool),
        unnest(${mails.map((mail) => mail.key ?? noBytes)}::bytea[]),
        unnest(${mails.map((mail) => mail.sha256)}::bytea[]),
        unnest(${mails.map((mail) => mail.content?.raw ?? noBytes)}::bytea[]),
        unnest(${mails.map((mail) => mail.content?.text ?? "")}::text[]),
        unnest(${mails.map((mail) => mail.content?.html ?? "")}::text[]),
        unnest(${mails.map((mail) => mail.content?.search_text ?? "")}::text[]),
        unnest(${mails.map((mail) => mail.content?.structure ?? "")}::text[])
      ) with ordinality as i (
        box, id, public_id, tag, tags, message_id, envelope_from, recipient, size, summary, received_at, related, subject_key,
        rejoins, renews, headers,
        has_text, has_html, has_key, key, sha256, raw, text, html, search_text, structure, n)
      join boxes on boxes.box = i.box
    )`
}

/** The outcome of a group of messages. */
interface Stored {
  readonly stored: ReadonlyArray<string>
  /** Stored earlier by the same actor message. */
  readonly known: ReadonlyArray<string>
  readonly repeated: ReadonlyArray<string>
  /** Bytes in the Mailbox, including the messages stored by this statement. */
  readonly used: string
}

interface Row extends Stored {
  /** Webhook deliveries that this statement queued. */
  readonly queued: number
}

/**
 * Parts of the statement that only some messages need. Each has a startup cost even without rows, so it is left out if
 * no message needs it. Each variant has its own cached plan.
 */
const asNeeded = (sql: Sql, mails: ReadonlyArray<ReceivedMail>) => ({
  references: mails.some(Threading.refers)
    ? sql`${Threading.referencesNoted(sql, sql`identity_id`, "threaded")},`
    : sql``,
  // Claiming a body that was stored in advance makes it searchable.
  claimed: mails.some(({ content }) => content === null)
    ? sql`
    claimed as (
      update message_content c set identity_id = arrived.identity_id
      from arrived where not arrived.has_content and c.message_id = arrived.id
    ),`
    : sql``,
  renewed: mails.some((mail) => renewedBy(mail) !== null)
    ? sql`
    renewed as (
      insert into allowed_recipient (identity_id, address, reason, created_at, expires_at)
      select identity_id, renews, 'inbound', max(received_at), max(received_at) + ${Timing.inboundLapse}::interval
      from arrived where renews is not null group by identity_id, renews
      on conflict (identity_id, address) do update set expires_at = excluded.expires_at
      where allowed_recipient.reason = 'inbound'
    ),`
    : sql``,
  claimed_agents: mails.some(({ agent_claim }) => agent_claim !== undefined)
    ? sql`
    claimed_agents as (
      insert into agent_claim (message_id, identity_id, did, domain, next_attempt_at)
      select arrived.id, arrived.identity_id, c.did, c.domain, arrived.written_at
      from arrived join jsonb_to_recordset(${JSON.stringify(
        mails.flatMap(({ message_id, agent_claim }) =>
          agent_claim === undefined ? [] : [{ id: message_id, ...agent_claim }],
        ),
      )}::jsonb) as c (id uuid, did text, domain text) on c.id = arrived.id
    ),`
    : sql``,
})

const store = (sql: Sql, groups: ReadonlyArray<Group>) => {
  const identityId = sql`identity_id`
  const { references, claimed, renewed, claimed_agents } = asNeeded(
    sql,
    groups.flatMap(({ mails }) => mails),
  )
  return commitTogether<Row>(
    groups.map(({ write }) => ({ ...write, sql })),
    sql`
    ${incoming(sql, groups)},
    marks as materialized (
      select i.box, i.n, i.id, mark.message_id from incoming i join unanswered_mail mark on mark.key = i.key
      where i.has_key and mark.received_at > i.written_at - ${Timing.mailRepeat}::interval
    ),
    fitting as materialized (
      select new.n, new.identity_id, new.size, row_number() over (partition by new.identity_id order by new.n) - 1 as place
      from (
        select n, identity_id, quota, size, sum(size) over (partition by identity_id order by n) as upto from incoming i
        where not exists (select from marks where marks.n = i.n)
      ) new join mailbox m on m.identity_id = new.identity_id and m.bytes_used + new.upto <= new.quota
    ),
    box as (
      update mailbox m
      set uid_next = uid_next + added.count, bytes_used = bytes_used + added.bytes, modseq = modseq + 1
      from (select identity_id, count(*)::int as count, sum(size)::bigint as bytes from fitting group by identity_id) added
      where m.identity_id = added.identity_id
      returning m.identity_id, m.uid_next - added.count as first, m.modseq
    ),
    arrived as materialized (
      select i.n, i.box, i.id, i.public_id, i.identity_id, i.org_id, i.handle, i.written_at, i.tag, i.tags, i.message_id, i.envelope_from,
             i.recipient, i.size, i.summary, i.received_at, i.related, i.subject_key, i.rejoins, i.renews, i.has_key, i.key,
             i.sha256, i.headers is not null as has_content, box.first + fitting.place::int as uid, box.modseq
      from fitting join incoming i on i.n = fitting.n join box on box.identity_id = i.identity_id
      order by i.n
    ),
    threaded as materialized (
      select threading.*, ${Threading.threadOf(sql, sql`threading.identity_id`)} as thread_id from arrived threading
    ),
    stored as (
      insert into message (id, identity_id, uid, direction, thread_id, subject_key, tag, tags, message_id, envelope_from,
                           recipient, sha256, size, summary, received_at, modseq)
      select id, identity_id, uid, 'inbound', thread_id, subject_key, tag, tags, message_id, envelope_from,
             recipient, sha256, size, summary, received_at, modseq
      from threaded
    ),
    ${references}
    ${placed(sql, identityId, sql`arrived`, "inbox")},
    marked as (
      insert into unanswered_mail (key, message_id, received_at)
      select key, id, received_at from arrived where has_key
      on conflict (key) do update set message_id = excluded.message_id, received_at = excluded.received_at
    ),
    contents as (
      insert into message_content (message_id, identity_id, raw, text, html, headers, search_text, structure, created_at)
      select i.id, i.identity_id, i.raw, case when i.has_text then i.text end, case when i.has_html then i.html end, i.headers,
             i.search_text, nullif(i.structure, ''), i.received_at
      from arrived join incoming i on i.n = arrived.n where arrived.has_content
      on conflict (message_id) do nothing
    ),
    ${claimed}
    ${renewed}
    ${claimed_agents}
    ${raise(
      // Incoming mail has no caller.
      { sql, identity: { id: identityId, handle: sql`handle`, orgId: sql`org_id` }, at: sql`written_at`, by: system },
      "arrived",
      "email.received",
      {
        message_id: sql`public_id`,
        from: sql`summary -> 'from'`,
        to: sql`summary -> 'to'`,
        subject: sql`summary -> 'subject'`,
        snippet: sql`summary -> 'snippet'`,
        tag: sql`tag`,
        tags: sql`to_jsonb(tags)`,
        origin: sql`summary -> 'origin'`,
        size: sql`size`,
        received_at: sql`to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
      },
    )}`,
    sql`
      array(select id::text from arrived where box = fence.n) as stored,
      array(select id::text from marks where box = fence.n and message_id = id) as known,
      array(select id::text from marks where box = fence.n and message_id <> id) as repeated,
      ((select m.bytes_used from boxes join mailbox m using (identity_id) where boxes.box = fence.n)
        + coalesce((select sum(size) from arrived where box = fence.n), 0))::text as used,
      (select count(*)::int from boxes join queued using (identity_id) where boxes.box = fence.n) as queued`,
  )
}

const outcomeOf = ({ write, mails }: Group, row: Row): Stored => {
  if (mails.some(({ agent_claim }) => agent_claim !== undefined)) write.due()
  else if (row.queued > 0) write.due("deliveries")
  return row
}

export class InboundBatch extends Context.Service<
  InboundBatch,
  { readonly store: (group: Group) => Effect.Effect<Stored, SqlError.SqlError | FenceLost> }
>()("@svc/cluster/mail/InboundBatch") {}

export const layer = Layer.effect(
  InboundBatch,
  Effect.gen(function* () {
    const sql = yield* Writes
    const fresh = yield* RecentTexts
    const usage = yield* UsageCounters
    const share = yield* GroupCommit.make(
      (groups: ReadonlyArray<Group>) =>
        Effect.map(store(sql, groups), (rows) =>
          rows.map((outcome, index) => Exit.map(outcome, (row) => outcomeOf(groups[index]!, row))),
        ),
      together,
    )
    return {
      store: (group: Group) =>
        Effect.map(share(group), (outcome) => {
          for (const { message_id, content } of group.mails) {
            if (content !== null) fresh.keep(message_id, content.search_text)
          }
          if (outcome.stored.length > 0) {
            const of = { identity: group.write.identity.id }
            usage.add(of, "mail_received", { count: outcome.stored.length })
            usage.add(of, "mailbox", { count: Number(outcome.used) })
          }
          return outcome
        }),
    }
  }),
)
