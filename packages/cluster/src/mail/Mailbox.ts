/**
 * Writing to a Mailbox, which only its Identity's actor does, so that UIDs are given in commit order and without gaps.
 * Acceptance is one statement: the message with its UID, the Mailbox's size, the renewed Allowed Recipient,
 * `email.received` and the deliveries it queues are one commit.
 */
import { toPublic } from "@svc/domain/Ids"
import { MailRefused, type ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { type Handling, once } from "../actor/Handling.ts"
import { commit, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import { insertContent } from "./MessageContent.ts"
import { Timing } from "../Timing.ts"

export const handlers = (
  { fromOutside, onPresent }: Handling,
  /** Bytes a Mailbox holds. */
  limits: { readonly mailboxBytes: number },
) => ({
  ReceiveMail: fromOutside(
    (write, mail: ReceivedMail) => receive(write, mail, limits.mailboxBytes),
    (identity) =>
      Effect.fail(
        new MailRefused({ reason: identity === undefined || identity.status === "deleting" ? "gone" : "not_yet" }),
      ),
  ),
  RefuseMail: fromOutside(refuse, () => Effect.void),
  RemoveMessage: onPresent(once("RemoveMessage", remove)),
})

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

const receive = Effect.fnUntraced(function* (write: Write, mail: ReceivedMail, quotaBytes: number) {
  const { sql, identity } = write
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
                 ${at}::timestamptz + ${Timing.inboundLapse}::interval
          from stored
          on conflict (identity_id, address) do update set expires_at = excluded.expires_at
          where allowed_recipient.reason = 'inbound'
        )`
      : sql``
  const row = yield* commit<{ stored: boolean; repeated: boolean }>(
    write,
    sql`
    earlier as (
      select 1 from message
      where identity_id = ${identity.id}::uuid and sha256 = ${mail.sha256}::bytea and envelope_from = ${mail.envelope_from}
        and received_at > ${at}::timestamptz - ${Timing.mailRepeat}::interval
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
    ${raise({ ...write, at }, "stored", "email.received", data)}`,
    {
      columns: sql`exists (select from stored) as stored, exists (select from earlier) as repeated`,
      raises: true,
    },
  )
  if (!row.stored && !row.repeated) return yield* new MailRefused({ reason: "full" })
})

/** Counts a message turned away; the first one in an hour raises `email.refused`. */
const refuse = Effect.fnUntraced(function* (
  write: Write,
  refusal: { readonly reason: "size" | "full"; readonly from: string },
) {
  const { sql, identity, at } = write
  yield* commit(
    write,
    sql`
    counted as (
      update mailbox set refusals = refusals + 1 where identity_id = ${identity.id}::uuid and exists (select from fence)
        and refused_at > ${at}::timestamptz - ${Timing.refusalWindow}::interval
    ),
    opened as (
      update mailbox m set refusals = 0, refused_at = ${at}
      from mailbox before
      where m.identity_id = ${identity.id}::uuid and before.identity_id = m.identity_id and exists (select from fence)
        and (m.refused_at is null or m.refused_at <= ${at}::timestamptz - ${Timing.refusalWindow}::interval)
      returning before.refusals as earlier
    ),
    ${raise(write, "opened", "email.refused", {
      reason: refusal.reason,
      from: refusal.from,
      // The message at hand and those turned away since the Event before.
      count: sql`opened.earlier + 1`,
    })}`,
    { raises: true },
  )
})

/** Removes one message; its UID is never given again. */
const remove = Effect.fnUntraced(function* (
  write: Write,
  { message_id }: { readonly org_id: string; readonly message_id: string },
) {
  const { sql, identity } = write
  const row = yield* commit<{ gone: boolean }>(
    write,
    sql`
    gone as (
      delete from message where id = ${message_id} and identity_id = ${identity.id} and exists (select from fence) returning id, size
    ),
    contents as (delete from message_content c using gone where c.message_id = gone.id),
    box as (update mailbox set bytes_used = bytes_used - gone.size from gone where identity_id = ${identity.id})`,
    { columns: sql`exists (select from gone) as gone` },
  )
  if (!row.gone) return yield* new NotFound({ detail: "There is no such message." })
})
