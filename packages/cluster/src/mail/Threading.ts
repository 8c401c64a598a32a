/**
 * Which conversation an arriving message belongs to: that of a message it refers to; else of one that refers to what it
 * refers to, or to itself; else, where it says that it continues something but its program cut the references, that of its
 * subject in which its sender took part lately; else its own. A message that failed its sender's proof is joined by no
 * subject, since anybody can write one.
 */
import * as Subject from "@svc/domain/mail/Subject"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** References that are remembered of one message: the first, and those nearest to it. */
const remembered = 10
/** Conversations of a subject that are looked at, and messages of each, for a common participant. */
const looked = { threads: 5, messages: 20 }

/** What a message says of the conversation it is in; one that goes out continues none by its subject alone. */
type Spoken = Pick<ReceivedMail, "references" | "in_reply_to" | "subject" | "from"> & {
  readonly origin?: ReceivedMail["origin"]
}

const relatedOf = (mail: Spoken) => [...mail.references, ...(mail.in_reply_to === null ? [] : [mail.in_reply_to])]

/** Whether a message refers to others. */
export const refers = (mail: Spoken): boolean => relatedOf(mail).length > 0

/** Columns of a message that its conversation is found by. */
export const namesOf = (mail: Spoken) => {
  const { key, continues } = Subject.read(mail.subject)
  const sender = mail.from?.address.toLowerCase() ?? null
  return {
    related: relatedOf(mail),
    subject_key: key,
    /** Who continues a conversation of the subject; null where nobody does. */
    rejoins: continues && key !== null && mail.origin !== undefined && mail.origin.verdict !== "failed" ? sender : null,
  }
}

/** Whether the conversation of a message may depend on one of those that `before` was asked about, which it remembers. */
export const dependence = () => {
  const ids = new Set<string>()
  const subjects = new Set<string>()
  return (mail: ReceivedMail): boolean => {
    const { related, subject_key, rejoins } = namesOf(mail)
    const own = mail.message_id_header === null ? related : [...related, mail.message_id_header]
    const depends = own.some((id) => ids.has(id)) || (rejoins !== null && subjects.has(subject_key!))
    for (const id of own) ids.add(id)
    if (subject_key !== null) subjects.add(subject_key)
    return depends
  }
}

/** The conversation of a row `threading` of {@link namesOf} with its `id`, `message_id` and `received_at`. */
export const threadOf = (sql: Sql, identityId: string | Statement.Fragment) => sql`
  coalesce(
    case when related <> '{}' then (
      select earlier.thread_id from message earlier
      where earlier.identity_id = ${identityId}::uuid and earlier.message_id = any(related)
      order by earlier.uid desc limit 1) end,
    case when related <> '{}' or message_id is not null then (
      select known.thread_id from thread_reference known
      where known.identity_id = ${identityId}::uuid and known.reference = any(related || message_id)
      order by known.reference = message_id desc, known.noted_at desc limit 1) end,
    case when rejoins is not null then (
      select t.id from (
        select t.id, t.last_uid from thread t
        where t.identity_id = ${identityId}::uuid and t.subject_key = threading.subject_key
        order by t.last_uid desc limit ${looked.threads}
      ) t
      where exists (
        select from (
          select m.summary, m.received_at from message m
          where m.identity_id = ${identityId}::uuid and m.thread_id = t.id order by m.uid desc limit ${looked.messages}
        ) m
        where m.received_at > threading.received_at - ${Timing.threadRejoin}::interval and (
          lower(m.summary -> 'from' ->> 'address') = rejoins or exists (
            select from jsonb_array_elements((m.summary -> 'to') || (m.summary -> 'cc')) one
            where lower(one ->> 'address') = rejoins)))
      order by t.last_uid desc limit 1) end,
    id)`

/** CTE `references_noted`: what the messages of `from` refer to belongs to their conversations. */
export const noted = (sql: Sql, identityId: string | Statement.Fragment, from: string) => sql`
  references_noted as (
    insert into thread_reference (identity_id, reference, thread_id, noted_at)
    select distinct on (1, 2) ${identityId}::uuid, reference, thread_id, received_at
    from ${sql.literal(from)}, unnest(related[1:1] || related[greatest(2, cardinality(related) - ${remembered - 2}::int):]) as reference
    where related <> '{}'
    on conflict (identity_id, reference) do nothing
  )`
