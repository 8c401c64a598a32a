/**
 * Writing to a Mailbox, which only its Identity's actor does, so that UIDs are given in commit order and without gaps.
 * Acceptance is one statement: the message with its UID, the Mailbox's size, the renewed Allowed Recipient,
 * `email.received` and the deliveries it queues are one commit.
 */
import { fromPublic, makeUuidV7, toPublic } from "@svc/domain/Ids"
import { MailRefused, type ReceivedMail } from "@svc/domain/identity/IdentityProtocol"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { raiseForIdentity } from "../events/Raise.ts"
import { committed, type Owned, type Written } from "../identity/Ownership.ts"

import { orUnavailable, type Sql } from "../store/Database.ts"
import { insertContent } from "./MessageContent.ts"

/** A repeat of the same DATA by the same sender within this time is the same message (traps.md 29). */
const repeatWindow = "5 days"
/** An automatic Allowed Recipient lapses this long after the last verified message. */
const inboundLapse = "30 days"
/** `email.refused` is raised at most once in this time, with the number of messages turned away. */
const refusalWindow = "1 hour"

export interface Received {
  /** How many deliveries the Event queued. */
  readonly queued: number
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

export const receive = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  mail: ReceivedMail,
  quotaBytes: number,
): Effect.fn.Return<Written<Received> | undefined, SqlError.SqlError | MailRefused> {
  const eventId = yield* makeUuidV7
  const at = mail.received_at
  const related = [...mail.references, ...(mail.in_reply_to === null ? [] : [mail.in_reply_to])]
  const data = {
    message_id: toPublic("msg_", mail.message_id),
    from: mail.from,
    to: mail.to,
    subject: mail.subject,
    snippet: mail.snippet,
    tag: mail.tag,
    origin: mail.origin,
    size: mail.size,
    received_at: at.toISOString(),
  }
  const renewed =
    mail.origin.verdict === "verified" && mail.from !== null && mail.envelope_from !== ""
      ? sql`, renewed as (
          insert into allowed_recipient (identity_id, address, reason, created_at, expires_at)
          select ${identity.id}::uuid, ${mail.from.address.toLowerCase()}::text, 'inbound', ${at}::timestamptz,
                 ${at}::timestamptz + ${inboundLapse}::interval
          from stored
          on conflict (identity_id, address) do update set expires_at = excluded.expires_at
          where allowed_recipient.reason = 'inbound'
        )`
      : sql``
  const [row] = yield* sql<{ owned: boolean; stored: boolean; repeated: boolean; full: boolean; queued: number }>`
    with ${fence},
    earlier as (
      select 1 from message
      where identity_id = ${identity.id}::uuid and sha256 = ${mail.sha256}::bytea and envelope_from = ${mail.envelope_from}
        and received_at > ${at}::timestamptz - ${repeatWindow}::interval
    ),
    box as (
      update mailbox set uid_next = uid_next + 1, bytes_used = bytes_used + ${mail.size}::bigint
      where identity_id = ${identity.id}::uuid and bytes_used + ${mail.size}::bigint <= ${quotaBytes}::bigint
        and exists (select from fence) and not exists (select from earlier)
      returning uid_next - 1 as uid
    ),
    stored as (
      insert into message (id, identity_id, uid, direction, thread_id, tag, message_id, envelope_from, recipient, sha256, size, summary, received_at)
      select ${mail.message_id}::uuid, ${identity.id}::uuid, box.uid, 'inbound',
             ${
               related.length === 0
                 ? sql`${mail.message_id}::uuid`
                 : sql`coalesce((
               select thread_id from message
               where identity_id = ${identity.id}::uuid and message_id = any(${related}::text[])
               order by id desc limit 1), ${mail.message_id}::uuid)`
             },
             ${mail.tag}::text, ${mail.message_id_header}::text, ${mail.envelope_from}::text, ${mail.recipient}::text,
             ${mail.sha256}::bytea, ${mail.size}::int, ${JSON.stringify(summaryOf(mail))}::jsonb, ${at}::timestamptz
      from box
      returning id
    )
    ${mail.content === null ? sql`` : sql`, ${insertContent(sql, "stored", mail.message_id, mail.content, at)}`}
    ${renewed},
    ${raiseForIdentity(sql, "stored", { eventId, type: "email.received", org: identity.orgId, identity, data, at })}
    select exists (select from fence) as owned, exists (select from stored) as stored,
           exists (select from earlier) as repeated, (select count(*) from queued)::int as queued`
  if (row?.owned !== true) return undefined
  if (row.stored || row.repeated) return { value: { queued: row.queued } }
  return yield* new MailRefused({ reason: "full" })
})

/** Counts a message turned away; the first one in an hour raises `email.refused`. */
export const refuse = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  refusal: { readonly reason: "size" | "full"; readonly from: string },
  at: Date,
): Effect.fn.Return<Written<Received> | undefined, SqlError.SqlError> {
  const eventId = yield* makeUuidV7
  // The message at hand and those turned away since the Event before.
  const data = sql`jsonb_build_object('reason', ${refusal.reason}::text, 'from', ${refusal.from}::text, 'count', opened.earlier + 1)`
  const [row] = yield* sql<{ owned: boolean; queued: number }>`
    with ${fence},
    counted as (
      update mailbox set refusals = refusals + 1 where identity_id = ${identity.id}::uuid and exists (select from fence)
        and refused_at > ${at}::timestamptz - ${refusalWindow}::interval
    ),
    opened as (
      update mailbox m set refusals = 0, refused_at = ${at}
      from mailbox before
      where m.identity_id = ${identity.id}::uuid and before.identity_id = m.identity_id and exists (select from fence)
        and (m.refused_at is null or m.refused_at <= ${at}::timestamptz - ${refusalWindow}::interval)
      returning before.refusals as earlier
    ),
    ${raiseForIdentity(sql, "opened", { eventId, type: "email.refused", org: identity.orgId, identity, data, at })}
    select exists (select from fence) as owned, (select count(*) from queued)::int as queued`
  return row?.owned === true ? { value: { queued: row.queued } } : undefined
})

/** Removes one message; its UID is never given again. */
export const remove = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  messageId: string,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | NotFound> {
  const [row] = yield* sql<{ owned: boolean; gone: boolean }>`
    with ${fence},
    gone as (
      delete from message where id = ${messageId} and identity_id = ${identity.id} and exists (select from fence) returning id, size
    ),
    contents as (delete from message_content c using gone where c.message_id = gone.id),
    box as (update mailbox set bytes_used = bytes_used - gone.size from gone where identity_id = ${identity.id})
    select exists (select from fence) as owned, exists (select from gone) as gone`
  if (row?.owned === true && !row.gone) return yield* new NotFound({ detail: "There is no such message." })
  return committed(row, undefined)
})

/** Whether the Mailbox has a message newer than this one (its public id), or any at all. */
export const hasNewer = (sql: Sql, identityId: string, after: string | null) => {
  const behind = after === null ? undefined : fromPublic("msg_", after)
  return orUnavailable(
    Effect.map(
      sql`select 1 from message where identity_id = ${identityId} ${behind === undefined ? sql`` : sql`and id > ${behind}::uuid`} limit 1`,
      (rows) => rows.length > 0,
    ),
  )
}
