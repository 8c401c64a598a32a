/**
 * Decides the thread of a new message: first the thread of a message it refers to; then that of a message that shares a
 * reference with it or refers to it; then, for a reply without references, a thread with the same subject in which its
 * sender took part recently; otherwise a new thread. A message whose sender failed authentication never joins a thread
 * by subject, since anybody can write one.
 */
import * as Subject from "@svc/domain/mail/Subject"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** References stored per message: the first and the most recent ones. */
const remembered = 10
/** Threads with the same subject, and messages of each, that are checked for a common participant. */
const looked = { threads: 5, messages: 20 }

/**
 * The fields of a message that determine its thread. An outbound message has no origin and never joins a thread by
 * subject.
 */
type ThreadFields = Pick<ReceivedMail, "references" | "in_reply_to" | "subject" | "from"> & {
  readonly origin?: ReceivedMail["origin"]
}

const relatedOf = (mail: ThreadFields) => [...mail.references, ...(mail.in_reply_to === null ? [] : [mail.in_reply_to])]

/** Whether a message refers to others. */
export const refers = (mail: ThreadFields): boolean => relatedOf(mail).length > 0

/** Returns the columns by which the thread of a message is found. */
export const threadKeys = (mail: ThreadFields) => {
  const { key, continues } = Subject.read(mail.subject)
  const sender = mail.from?.address.toLowerCase() ?? null
  return {
    related: relatedOf(mail),
    subject_key: key,
    /** The sender who continues a thread by subject; null if the message does not. */
    rejoins: continues && key !== null && mail.origin !== undefined && mail.origin.verdict !== "failed" ? sender : null,
  }
}

/**
 * Returns a predicate that tells whether the thread of a message may depend on a message that was passed to it earlier.
 */
export const dependence = () => {
  const ids = new Set<string>()
  const subjects = new Set<string>()
  return (mail: ReceivedMail): boolean => {
    const { related, subject_key, rejoins } = threadKeys(mail)
    const own = mail.message_id_header === null ? related : [...related, mail.message_id_header]
    const depends = own.some((id) => ids.has(id)) || (rejoins !== null && subjects.has(subject_key!))
    for (const id of own) ids.add(id)
    if (subject_key !== null) subjects.add(subject_key)
    return depends
  }
}

/**
 * Returns an expression for the thread of a row `threading`, which has the columns of {@link threadKeys} and `id`,
 * `message_id` and `received_at`.
 */
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

/** CTE `references_noted`: assigns the references of the messages in `from` to their threads. */
export const referencesNoted = (sql: Sql, identityId: string | Statement.Fragment, from: string) => sql`
  references_noted as (
    insert into thread_reference (identity_id, reference, thread_id, noted_at)
    select distinct on (1, 2) ${identityId}::uuid, reference, thread_id, received_at
    from ${sql.literal(from)}, unnest(related[1:1] || related[greatest(2, cardinality(related) - ${remembered - 2}::int):]) as reference
    where related <> '{}'
    on conflict (identity_id, reference) do nothing
  )`
