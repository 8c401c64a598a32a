/**
 * Taking a message to send: judged, stored in the Mailbox and put into the outbox in one commit, so that an answer means
 * it is durable. The id of the message is the command's: one that comes twice is sent once. Where a person has to approve
 * what the Identity's key sends, it waits in the same rows, with nothing due.
 * What a mail program submits again, under whatever id, is known by its key.
 */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { domainOf } from "@svc/domain/mail/AddrSpec"
import type { OriginVerdict } from "@svc/domain/mail/Message"
import type { Acceptance, ComposedMail, Recipient, SendMail } from "@svc/domain/mail/SendingProtocol"
import { Conflict, MessageInvalid, NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Rpc } from "effect/rpc"
import type { Handling } from "../../actor/Handling.ts"
import { commit, type Write } from "../../actor/Write.ts"
import { raise, raiseForOrg } from "../../events/Raise.ts"
import { Timing } from "../../Timing.ts"
import { summaryOf } from "../Summary.ts"
import * as Threading from "../Threading.ts"
import { placed } from "../folders/Placing.ts"
import {
  judgeRecipients,
  nearAt,
  overHour,
  paused,
  type Refused,
  refusedOf,
  type Use,
  useOf,
} from "./SendingJudgement.ts"

export interface SendingLimits {
  /** Bytes a Mailbox holds. */
  readonly mailboxBytes: number
  /** Messages an Identity may send in any hour. */
  readonly mailHourly: number
}

type Command = Rpc.Payload<typeof SendMail>

export const handlers = ({ onReady }: Handling, limits: SendingLimits) => ({
  SendMail: onReady((write, command: Command) => send(write, command, limits)),
})

interface Standing extends Use {
  readonly stopped: boolean
  readonly stop_reason: string | null
  readonly approval: "none" | "required"
  readonly bytes_used: string
  readonly near: boolean
  /** Of a message of this id: what became of it. */
  readonly known: string | null
  readonly known_id: string | null
  readonly draft: number | null
  /** Recipients to whom nothing may go. */
  readonly refused: ReadonlyArray<Refused>
}

/** All that a message is judged by, in one look. */
const standingOf = (write: Write, id: string, recipients: ReadonlyArray<Recipient>) => {
  const { sql, identity, at } = write
  return Effect.map(
    sql<Standing>`
      select m.stopped_at is not null as stopped, m.stop_reason, m.approval, m.bytes_used::text as bytes_used,
             coalesce(m.mail_near_at > ${new Date(at.getTime() - Timing.mailHourMillis)}, false) as near,
             ${useOf(write)},
             (select o.status from outgoing o where o.message_id = ${id} and o.identity_id = m.identity_id) as known,
             (select k.message_id from message k where k.id = ${id} and k.identity_id = m.identity_id) as known_id,
             (select d.version from draft d where d.id = ${id} and d.identity_id = m.identity_id) as draft,
             ${refusedOf(write, recipients)} as refused
      from mailbox m where m.identity_id = ${identity.id}`,
    ([row]) => row,
  )
}

/** What became of the same message when it was submitted before. */
const submitted = Effect.fnUntraced(function* ({ sql, identity }: Write, key: Uint8Array) {
  const [before] = yield* sql<{ id: string; status: string; message_id: string }>`
    select m.id, o.status, m.message_id from outgoing o join message m on m.id = o.message_id
    where o.identity_id = ${identity.id} and o.submission_key = ${key}`
  if (before === undefined) return undefined
  if (before.status === "refused") {
    return yield* new MessageInvalid({
      detail: "The message was submitted before, and it was not approved.",
      errors: [],
    })
  }
  const known: Acceptance = {
    status: before.status === "awaiting_approval" ? "awaiting_approval" : "queued",
    message_id_header: before.message_id,
    message_id: before.id,
  }
  return known
})

const send = Effect.fnUntraced(function* (write: Write, command: Command, limits: SendingLimits) {
  const { mail, recipients } = command
  const before = command.submission_key === undefined ? undefined : yield* submitted(write, command.submission_key)
  if (before !== undefined) return before
  const standing = yield* standingOf(write, mail.message_id, recipients)
  if (standing === undefined) return yield* new NotFound({ detail: "The Identity has no Mailbox." })
  if (standing.known !== null) {
    const known: Acceptance = {
      status: standing.known === "awaiting_approval" ? "awaiting_approval" : "queued",
      message_id_header: standing.known_id ?? mail.message_id_header,
    }
    return known
  }
  if (command.draft_version !== null && standing.draft !== command.draft_version) {
    return yield* standing.draft === null
      ? new NotFound({ detail: "There is no such draft." })
      : new Conflict({ detail: "The draft was changed meanwhile.", agent_hint: "wait" })
  }
  if (standing.stopped) return yield* paused(standing.stop_reason)
  yield* judgeRecipients(write, mail.subject, recipients, standing.refused)
  if (standing.used >= limits.mailHourly) return yield* overHour(limits.mailHourly, standing, write.at)
  if (Number(standing.bytes_used) + mail.size > limits.mailboxBytes) {
    return yield* new Conflict({ detail: "The Mailbox is full: a copy of the message has no room. Remove messages." })
  }
  // What the account holder or an Admin Key sends was decided by who sends it.
  const waits = standing.approval === "required" && write.by.kind !== "session" && write.by.kind !== "admin_key"
  yield* store(write, command, waits, {
    quota: limits.mailHourly,
    used: standing.used + 1,
    isNear: !standing.near && standing.used + 1 >= nearAt(limits.mailHourly),
  })
  if (!waits) write.due()
  const acceptance: Acceptance = {
    status: waits ? "awaiting_approval" : "queued",
    message_id_header: mail.message_id_header,
  }
  return acceptance
})

/** Nobody judged where the message is from: it is ours. */
const originOf = ({ from }: ComposedMail): OriginVerdict => ({
  verdict: "verified",
  spf: "internal",
  dkim: "internal",
  dmarc: "internal",
  domain: domainOf(from.address),
})

/** A row of the outbox for each domain among the recipients. */
const rowsOf = Effect.fnUntraced(function* (recipients: ReadonlyArray<Recipient>) {
  const byDomain = Map.groupBy(recipients, ({ address }) => domainOf(address))
  return yield* Effect.forEach(byDomain, ([domain, of]) =>
    Effect.map(makeUuidV7, (id) => ({ id, domain, addresses: of.map(({ address }) => address) })),
  )
})

interface Counted {
  readonly quota: number
  readonly used: number
  readonly isNear: boolean
}

const store = Effect.fnUntraced(function* (
  write: Write,
  { mail, recipients, answers, draft_version, submission_key }: Command,
  waits: boolean,
  { quota, used, isNear }: Counted,
) {
  const { sql, identity, at, by } = write
  const rows = yield* rowsOf(recipients)
  const id = mail.message_id
  const lapses = waits ? new Date(at.getTime() + Timing.approvalMillis) : null
  const { related, subject_key } = Threading.namesOf(mail)
  const { content } = mail
  const body =
    content === null
      ? // What was stored ahead is searched from now on.
        sql`,
      claimed as (
        update message_content c set identity_id = ${identity.id}::uuid from stored where c.message_id = stored.id
      )`
      : sql`,
      contents as (
        insert into message_content (message_id, identity_id, raw, text, html, headers, search_text, created_at)
        select ${id}::uuid, ${identity.id}::uuid, ${content.raw}::bytea, ${content.text}::text, ${content.html}::text,
               ${JSON.stringify(content.headers)}::jsonb, ${content.search_text}::text, ${at}::timestamptz
        from stored
        on conflict (message_id) do nothing
      )`
  yield* commit(
    write,
    sql`
    box as (
      update mailbox set uid_next = uid_next + 1, bytes_used = bytes_used + ${mail.size}::int, modseq = modseq + 1
        ${isNear ? sql`, mail_near_at = ${at}::timestamptz` : sql``}
      where identity_id = ${identity.id}::uuid and exists (select from fence)
      returning uid_next - 1 as uid, modseq
    ),
    threading as (
      select ${id}::uuid as id, ${mail.message_id_header}::text as message_id, ${related}::text[] as related,
             ${subject_key}::text as subject_key, null::text as rejoins, ${at}::timestamptz as received_at, box.uid, box.modseq
      from box
    ),
    threaded as materialized (
      select threading.*, coalesce(
        (select m.thread_id from message m where m.identity_id = ${identity.id}::uuid and m.id = ${answers}::uuid),
        ${Threading.threadOf(sql, identity.id)}) as thread_id
      from threading
    ),
    ${Threading.noted(sql, identity.id, "threaded")},
    stored as (
      insert into message (id, identity_id, uid, direction, thread_id, subject_key, tag, message_id, envelope_from,
                           recipient, sha256, size, summary, received_at, seen, modseq)
      select id, ${identity.id}::uuid, uid, 'outbound', thread_id, subject_key, null, message_id,
             ${mail.from.address}::text, ${recipients[0]?.address ?? ""}::text, ${mail.sha256}::bytea, ${mail.size}::int,
             ${JSON.stringify(summaryOf(mail, originOf(mail)))}::jsonb, received_at, true, modseq
      from threaded
      returning id, uid, modseq
    )${body},
    ${placed(sql, identity.id, sql`stored`, "sent")},
    answered as (
      update message set answered = true, modseq = box.modseq from box
      where message.identity_id = ${identity.id}::uuid and message.id = ${answers}::uuid and not message.answered
    ),
    sent as (
      insert into outgoing (message_id, identity_id, status, rows_left, lapses_at, asked_by, submission_key, created_at)
      select id, ${identity.id}::uuid, ${waits ? "awaiting_approval" : "queued"}::text, ${rows.length}::int,
             ${lapses}::timestamptz, ${by.kind}::text, ${submission_key ?? null}::bytea, ${at}::timestamptz
      from stored
      returning message_id
    ),
    boxes as (
      insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
      select r.id, sent.message_id, ${identity.id}::uuid, r.domain, ${waits ? null : at}::timestamptz, ${at}::timestamptz
      from sent, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (id uuid, domain text)
    ),
    people as (
      insert into outgoing_recipient (message_id, address, outbox_id, status, changed_at)
      select sent.message_id, a.address, r.id, 'queued', ${at}::timestamptz
      from sent, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (id uuid, addresses jsonb),
           jsonb_array_elements_text(r.addresses) as a (address)
      on conflict do nothing
    ),
    counted as (insert into mail_use (identity_id, at) select ${identity.id}::uuid, ${at}::timestamptz from sent),
    past as (
      delete from mail_use where identity_id = ${identity.id}::uuid and exists (select from sent)
        and at <= ${new Date(at.getTime() - Timing.mailHourMillis)}::timestamptz
    )
    ${draft_version === null ? sql`` : sql`, spent as (delete from draft where id = (select id from stored))`}
    ${
      isNear
        ? sql`, ${raiseForOrg({ sql, org: identity.orgId, at, by }, "sent", "limit.near", {
            limit: "mail_hourly",
            used,
            quota,
            window: "hour",
          })}`
        : sql``
    }
    ${
      waits
        ? sql`, ${raise(write, "sent", "email.approval_requested", {
            message_id: toPublic("msg_", id),
            subject: mail.subject,
            snippet: mail.snippet,
            size: mail.size,
            to: mail.to,
            cc: mail.cc,
            bcc: mail.bcc,
            expires_at: lapses!.toISOString(),
          })}`
        : sql``
    }`,
    { raises: waits },
  )
})
