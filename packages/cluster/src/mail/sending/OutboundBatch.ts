/**
 * Group commit of outbound messages for all Identities whose actors run in this process. Concurrent messages share one
 * statement. Messages with their threads, outbox rows and hourly counters are one commit. Each actor proves its own
 * ownership and adds one message at a time, within its turn. If an actor lost its ownership, its message is not stored,
 * and the others are not affected.
 */
import { toPublic } from "@svc/domain/Ids"
import { domainOf } from "@svc/domain/mail/AddrSpec"
import type { OriginVerdict } from "@svc/domain/mail/Message"
import type { ComposedMail } from "@svc/domain/mail/SendingProtocol"
import { Context, Effect, Exit, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { commitTogether, type FenceLost } from "../../actor/Write.ts"
import { auditWrites, notesOf } from "../../audit/AuditWrite.ts"
import { causedBy, raise, raiseForOrg } from "../../events/Raise.ts"
import * as Batcher from "../../store/Batcher.ts"
import { Reads, type Sql, Writes } from "../../store/Database.ts"
import * as GroupCommit from "../../store/GroupCommit.ts"
import { Timing } from "../../Timing.ts"
import { placed } from "../folders/FolderPlacement.ts"
import { summaryOf } from "../Summary.ts"
import * as Threading from "../Threading.ts"
import type { OutboundMessage } from "./OutboundMessage.ts"
import { type CheckedSend, type SendingState, sendingStates } from "./SendingState.ts"

/**
 * Limits of one statement in bytes and Identities, with at most one message per Identity. Only one statement runs at a
 * time, since two statements of half the size cost more than one.
 */
const together = {
  atOnce: 1,
  most: 32,
  apart: ({ write }: OutboundMessage) => write.identity.id,
  heaviest: {
    weight: 8 * 1024 * 1024,
    of: ({ mail }: OutboundMessage) => (mail.content === null ? 0 : mail.size),
  },
}

/** Our own messages need no authentication. */
const originOf = ({ from }: ComposedMail): OriginVerdict => ({
  verdict: "verified",
  spf: "internal",
  dkim: "internal",
  dmarc: "internal",
  domain: domainOf(from.address),
})

const noBytes = new Uint8Array(0)

/**
 * CTE `requested`: one row per message whose actor still owns the Mailbox; `n` is its position. Bodies are sent as typed
 * arrays, which contain no nulls (see `InboundBatch`).
 */
const requested = (sql: Sql, departures: ReadonlyArray<OutboundMessage>, positions: ReadonlyArray<number>) => {
  const rows = departures.map(
    (
      { write: { identity, at, by }, mail, recipient, rows, answers, draftVersion, submissionKey, waits, near },
      index,
    ) => {
      const { related, subject_key } = Threading.threadKeys(mail)
      return {
        identity_id: identity.id,
        org_id: identity.orgId,
        handle: identity.handle,
        at: at.toISOString(),
        id: mail.message_id,
        public_id: toPublic("msg_", mail.message_id),
        message_id: mail.message_id_header,
        sender: mail.from.address,
        recipient,
        size: mail.size,
        summary: summaryOf(mail, originOf(mail)),
        related,
        subject_key,
        answers,
        draft_version: draftVersion,
        waits,
        lapses_at: waits ? new Date(at.getTime() + Timing.approvalMillis).toISOString() : null,
        asked_by: by.kind,
        caused_by: waits || near !== null ? causedBy(by) : null,
        used: near?.used ?? null,
        quota: near?.quota ?? null,
        rows_left: rows.length,
        headers: mail.content?.headers ?? null,
        has_text: mail.content !== null && mail.content.text !== null,
        has_html: mail.content !== null && mail.content.html !== null,
        has_key: submissionKey !== undefined,
        note: positions[index],
      }
    },
  )
  return sql`
    requested as materialized (
      select i.* from rows from (
        jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as (
          identity_id uuid, org_id uuid, handle text, at timestamptz, id uuid, public_id text, message_id text, sender text,
          recipient text, size int, summary jsonb, related text[], subject_key text, answers uuid, draft_version int, waits bool,
          lapses_at timestamptz, asked_by text, caused_by text, used int, quota int, rows_left int, headers jsonb,
          has_text bool, has_html bool, has_key bool, note int),
        unnest(${departures.map(({ submissionKey }) => submissionKey ?? noBytes)}::bytea[]),
        unnest(${departures.map(({ mail }) => mail.sha256)}::bytea[]),
        unnest(${departures.map(({ mail }) => mail.content?.raw ?? noBytes)}::bytea[]),
        unnest(${departures.map(({ mail }) => mail.content?.text ?? "")}::text[]),
        unnest(${departures.map(({ mail }) => mail.content?.html ?? "")}::text[]),
        unnest(${departures.map(({ mail }) => mail.content?.search_text ?? "")}::text[])
      ) with ordinality as i (
        identity_id, org_id, handle, at, id, public_id, message_id, sender, recipient, size, summary, related, subject_key,
        answers, draft_version, waits, lapses_at, asked_by, caused_by, used, quota, rows_left, headers, has_text, has_html,
        has_key, note, key, sha256, raw, text, html, search_text, n)
      join fence on fence.n = i.n
    )`
}

interface Row {
  readonly stored: boolean
  /** Webhook deliveries that this statement queued. */
  readonly queued: number
}

const store = (sql: Sql, departures: ReadonlyArray<OutboundMessage>, patience: GroupCommit.Patience) => {
  const identityId = sql`identity_id`
  const some = (is: (departure: OutboundMessage) => boolean) => departures.some(is)
  const outboxes = departures.flatMap(({ rows }, index) => rows.map((row) => ({ ...row, n: index + 1 })))
  const people = outboxes.flatMap(({ n, id, addresses }) => addresses.map((address) => ({ n, id, address })))
  const change = { sql, at: sql`at`, by: sql`caused_by` }
  const { notes, positions } = notesOf(departures.map(({ write }) => write))
  const hasDrafts = some(({ draftVersion }) => draftVersion !== null)
  return commitTogether<Row>(
    departures.map(({ write }) => ({ ...write, sql })),
    sql`
    ${requested(sql, departures, positions)},
    free as materialized (
      select m.identity_id from requested join mailbox m on m.identity_id = requested.identity_id
      for no key update of m ${patience === "waits" ? sql`` : sql`skip locked`}
    ),
    ${
      hasDrafts
        ? // Drafts are written outside the actor. A draft that was changed or deleted since the check is not sent.
          sql`
    written as materialized (
      select d.id from free join requested on requested.identity_id = free.identity_id
      join draft d on d.id = requested.id and d.version = requested.draft_version for update of d
    ),`
        : sql``
    }
    box as (
      update mailbox m
      set uid_next = uid_next + 1, bytes_used = bytes_used + requested.size, modseq = modseq + 1
        ${some(({ near }) => near !== null) ? sql`, mail_near_at = case when requested.used is null then mail_near_at else requested.at end` : sql``}
      from requested join free on free.identity_id = requested.identity_id
      where m.identity_id = free.identity_id
        ${hasDrafts ? sql`and (requested.draft_version is null or requested.id in (select id from written))` : sql``}
      returning m.identity_id, m.uid_next - 1 as uid, m.modseq
    ),
    departed as materialized (
      select requested.*, box.uid, box.modseq, null::text as rejoins, requested.at as received_at
      from requested join box on box.identity_id = requested.identity_id
    ),
    threaded as materialized (
      select threading.*, coalesce(
        (select m.thread_id from message m where m.identity_id = threading.identity_id and m.id = threading.answers),
        ${Threading.threadOf(sql, sql`threading.identity_id`)}) as thread_id
      from departed threading
    ),
    ${Threading.referencesNoted(sql, identityId, "threaded")},
    stored as (
      insert into message (id, identity_id, uid, direction, thread_id, subject_key, tag, message_id, envelope_from,
                           recipient, sha256, size, summary, received_at, seen, modseq)
      select id, identity_id, uid, 'outbound', thread_id, subject_key, null, message_id, sender, recipient, sha256, size,
             summary, received_at, true, modseq
      from threaded
    ),
    contents as (
      insert into message_content (message_id, identity_id, raw, text, html, headers, search_text, created_at)
      select id, identity_id, raw, case when has_text then text end, case when has_html then html end, headers, search_text, at
      from departed where headers is not null
      on conflict (message_id) do nothing
    ),
    ${
      some(({ mail }) => mail.content === null)
        ? // Claiming a body that was stored in advance makes it searchable.
          sql`
    claimed as (
      update message_content c set identity_id = departed.identity_id
      from departed where departed.headers is null and c.message_id = departed.id
    ),`
        : sql``
    }
    ${placed(sql, identityId, sql`departed`, "sent")},
    ${
      some(({ answers }) => answers !== null)
        ? sql`
    answered as (
      update message set answered = true, modseq = departed.modseq from departed
      where message.identity_id = departed.identity_id and message.id = departed.answers and not message.answered
    ),`
        : sql``
    }
    sent as (
      insert into outgoing (message_id, identity_id, status, rows_left, lapses_at, asked_by, submission_key, created_at)
      select id, identity_id, case when waits then 'awaiting_approval' else 'queued' end, rows_left, lapses_at, asked_by,
             case when has_key then key end, at
      from departed
    ),
    boxes as (
      insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
      select r.id, d.id, d.identity_id, r.domain, case when not d.waits then d.at end, d.at
      from unnest(
        ${outboxes.map(({ n }) => n)}::int[], ${outboxes.map(({ id }) => id)}::uuid[],
        ${outboxes.map(({ domain }) => domain)}::text[]) as r (n, id, domain)
      join departed d on d.n = r.n
    ),
    people as (
      insert into outgoing_recipient (message_id, address, outbox_id, status, changed_at)
      select d.id, r.address, r.outbox_id, 'queued', d.at
      from unnest(
        ${people.map(({ n }) => n)}::int[], ${people.map(({ id }) => id)}::uuid[],
        ${people.map(({ address }) => address)}::text[]) as r (n, outbox_id, address)
      join departed d on d.n = r.n
    ),
    counted as (insert into mail_use (identity_id, at) select identity_id, at from departed),
    past as (
      delete from mail_use u using departed d
      where u.identity_id = d.identity_id and u.at <= d.at - make_interval(secs => ${Timing.mailHourMillis / 1000})
    )
    ${hasDrafts ? sql`, spent as (delete from draft using departed d where draft.id = d.id and d.draft_version is not null)` : sql``}
    ${auditWrites(sql, notes, "departed")}
    ${
      some(({ near }) => near !== null)
        ? sql`,
    nearing as (select * from departed where used is not null),
    ${raiseForOrg({ ...change, org: sql`org_id` }, "nearing", "limit.near", {
      limit: "mail_hourly",
      identity: sql`handle`,
      used: sql`used`,
      quota: sql`quota`,
      window: "hour",
    })}`
        : sql``
    }
    ${
      some(({ waits }) => waits)
        ? sql`,
    asking as (select * from departed where waits),
    ${raise(
      { ...change, identity: { id: identityId, handle: sql`handle`, orgId: sql`org_id` } },
      "asking",
      "email.approval_requested",
      {
        message_id: sql`public_id`,
        subject: sql`summary -> 'subject'`,
        snippet: sql`summary -> 'snippet'`,
        size: sql`size`,
        to: sql`summary -> 'to'`,
        cc: sql`summary -> 'cc'`,
        bcc: sql`summary -> 'bcc'`,
        expires_at: sql`to_char(lapses_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
      },
    )}`
        : sql``
    }`,
    sql`
      exists (select from departed where departed.n = fence.n) as stored,
      ${
        some(({ waits }) => waits)
          ? sql`(select count(*)::int from departed d join queued on queued.identity_id = d.identity_id where d.n = fence.n)`
          : sql`0`
      } as queued`,
  )
}

/** Returns whether the message was stored; undefined if another statement holds the lock of its Mailbox. */
const outcomeOf = ({ write }: OutboundMessage, row: Row, patience: GroupCommit.Patience): boolean | undefined => {
  if (row.queued > 0) write.due("deliveries")
  return row.stored || patience === "waits" ? row.stored : undefined
}

export class OutboundBatch extends Context.Service<
  OutboundBatch,
  {
    /** Reads the state that a message is checked against; undefined if the Identity has no Mailbox. */
    readonly judge: (judged: CheckedSend) => Effect.Effect<SendingState | undefined, SqlError.SqlError>
    /** Stores a message. Returns false if the Mailbox no longer exists or the draft was changed. */
    readonly store: (departure: OutboundMessage) => Effect.Effect<boolean, SqlError.SqlError | FenceLost>
  }
>()("@svc/cluster/mail/sending/OutboundBatch") {}

/**
 * The shared statement skips Mailboxes that another statement has locked, so that statements never wait for each
 * other's locks and one slow Identity does not block others. A separate statement, which waits for the lock, then
 * stores the skipped message.
 */
export const layer = Layer.effect(
  OutboundBatch,
  Effect.gen(function* () {
    const sql = yield* Writes
    const share = yield* GroupCommit.makeSkipping(
      (departures: ReadonlyArray<OutboundMessage>, patience) =>
        Effect.map(store(sql, departures, patience), (rows) =>
          rows.map((outcome, index) => Exit.map(outcome, (row) => outcomeOf(departures[index]!, row, patience))),
        ),
      (stored) => stored === undefined,
      {
        sql,
        lock: ({ write }) => sql`select 1 from mailbox where identity_id = ${write.identity.id} for no key update`,
      },
      together,
    )
    return {
      judge: yield* Batcher.make(sendingStates(yield* Reads)),
      store: (departure: OutboundMessage) => Effect.map(share(departure), (stored) => stored === true),
    }
  }),
)
