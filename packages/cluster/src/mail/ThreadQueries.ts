/**
 * Reads threads: the threads of a Mailbox by latest activity, and the messages of one thread, oldest first. Counts are
 * stored in the thread's row, so a list costs the same however many messages there are.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import type { Address } from "@svc/domain/mail/Message"
import * as Subject from "@svc/domain/mail/Subject"
import { textReply } from "@svc/domain/mail/TextReply"
import { limits, type Thread, type ThreadMessage } from "@svc/domain/mail/Thread"
import type { PageRequest } from "@svc/domain/Paging"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../store/Database.ts"
import { columns, type SummaryRow, summaryView } from "./MessageRows.ts"

interface ThreadRow {
  readonly id: string
  readonly last_uid: number
  readonly messages: number
  readonly unread: number
  readonly last_message_at: Date
  readonly subject: string
  readonly snippet: string
  readonly participants: ReadonlyArray<Address>
}

const view = ({ id, subject, participants, messages, unread, last_message_at, snippet }: ThreadRow): Thread => ({
  id: toPublic("thr_", id),
  subject: Subject.read(subject).base,
  participants,
  messages,
  unread,
  last_message_at,
  snippet,
})

/** Characters of a text that are examined for the reply part. */
const readForReply = 32 * 1024

const messageView = ({ text, ...row }: SummaryRow & { readonly text: string | null }): ThreadMessage => ({
  ...summaryView(row),
  text_reply: text === null ? null : textReply(text).slice(0, limits.textReply).toWellFormed(),
})

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing

  /** Reads threads by latest activity, each with its latest message and the participants of its latest messages. */
  const threads = (of: IdentityId, which: Statement.Fragment) => sql<ThreadRow>`
    select t.id, t.last_uid, t.messages, t.unread, m.received_at as last_message_at,
           m.summary ->> 'subject' as subject, m.summary ->> 'snippet' as snippet, people.participants
    from (${which}) t
    join message m on m.identity_id = ${of} and m.uid = t.last_uid
    cross join lateral (
      select coalesce(jsonb_agg(one order by uid, place), '[]') as participants from (
        select one, uid, place from (
          select distinct on (lower(one ->> 'address')) one, uid, place from (
            select summary, uid from message
            where identity_id = ${of} and thread_id = t.id and not is_draft order by uid desc limit 20
          ) latest,
          jsonb_array_elements(
            jsonb_build_array(latest.summary -> 'from') || (latest.summary -> 'to') || (latest.summary -> 'cc')
          ) with ordinality as who (one, place)
          where one ->> 'address' is not null and place <= ${limits.participants}::int
          order by lower(one ->> 'address'), uid, place
        ) each_once order by uid, place limit ${limits.participants}::int
      ) first_of_them
    ) people
    order by t.last_uid desc`

  return {
    list: Effect.fn("ThreadQueries.list")(function* (
      identityId: IdentityId,
      { archived, ...request }: PageRequest & { readonly archived?: boolean | undefined },
    ) {
      const current = sql`exists (
        select from message m where m.identity_id = ${identityId} and m.thread_id = thread.id and not m.is_draft
          and 'archived' <> all(m.labels))`
      const ofArchive = archived === undefined ? sql`` : archived ? sql`and not ${current}` : sql`and ${current}`
      return yield* Cursors.page(
        sealing,
        Cursors.filteredList(`threads/${identityId}`, { archived }),
        request,
        (behind, atMost) =>
          threads(
            identityId,
            sql`select * from thread where identity_id = ${identityId}
                  ${behind === undefined ? sql`` : sql`and last_uid < ${Number(behind)}::int`} ${ofArchive}
                order by last_uid desc limit ${sql.literal(String(atMost))}`,
          ),
        ({ last_uid }) => String(last_uid),
        view,
      )
    }, orUnavailable),

    /** Returns a thread and a page of its messages, oldest first. */
    read: Effect.fn("ThreadQueries.read")(function* (identityId: IdentityId, id: string, request: PageRequest) {
      const uuid = fromPublic("thr_", id) ?? null
      const [found] = yield* threads(
        identityId,
        sql`select * from thread where identity_id = ${identityId} and id = ${uuid}::uuid`,
      )
      if (found === undefined) return yield* new NotFound({ detail: "The thread does not exist." })
      const { entries, next_cursor } = yield* Cursors.page(
        sealing,
        `threads/${identityId}/${found.id}`,
        request,
        (behind, atMost) => sql<SummaryRow & { readonly text: string | null }>`
          select ${columns(sql)}, left(c.text, ${readForReply}::int) as text
          from message m join message_content c on c.message_id = m.id
          where m.identity_id = ${identityId} and m.thread_id = ${found.id} and not m.is_draft
            ${behind === undefined ? sql`` : sql`and m.uid > ${Number(behind)}::int`}
          order by m.uid limit ${sql.literal(String(atMost))}`,
        ({ uid }) => String(uid),
        (row) => row,
      )
      // Yields between messages, so that long texts do not block the event loop.
      const messages = yield* Effect.forEach(entries, (row) => Effect.as(Effect.yieldNow, messageView(row)))
      return { thread: view(found), messages, next_cursor }
    }, orUnavailable),
  }
})

export class ThreadQueries extends Context.Service<ThreadQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/ThreadQueries",
) {
  static readonly layer = Layer.effect(ThreadQueries, make)
}
