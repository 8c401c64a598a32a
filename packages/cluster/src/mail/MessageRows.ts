/**
 * A stored message as lists show it. A row is what `Acceptance` wrote of a judged message, so it is read as it stands. A
 * page of them goes out as the text that the store has ({@link summaryText}): to make values of it, and text of those again,
 * was an eighth of what a page costs.
 */
import { toPublic } from "@svc/domain/Ids"
import { rfc3339 } from "@svc/domain/Rfc3339"
import type { MessageSummary, StoredSummary } from "@svc/domain/mail/Message"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

export interface SummaryRow {
  readonly id: string
  readonly uid: number
  readonly direction: "inbound" | "outbound"
  readonly thread_id: string
  readonly tag: string | null
  readonly message_id: string | null
  readonly size: number
  readonly summary: StoredSummary
  readonly received_at: Date
  readonly seen: boolean
  readonly flagged: boolean
  readonly labels: ReadonlyArray<string>
}

/** Of `message m`. */
export const columns = (sql: Sql): Statement.Fragment =>
  sql`m.id, m.uid, m.direction, m.thread_id, m.tag, m.message_id, m.size, m.summary, m.received_at, m.seen, m.flagged, m.labels`

/** A row whose summary is the text of its JSON. */
export interface TextRow extends Omit<SummaryRow, "summary"> {
  readonly summary: string
}

/** Of `message m`, for {@link summaryText}. */
export const textColumns = (sql: Sql): Statement.Fragment =>
  sql`m.id, m.uid, m.direction, m.thread_id, m.tag, m.message_id, m.size, m.summary::text as summary, m.received_at, m.seen,
      m.flagged, m.labels`

/** Member by member, in the order of {@link summaryText}: a response has what its schema has, whatever else the store may keep. */
export const summaryView = (row: SummaryRow): MessageSummary => {
  const { summary } = row
  return {
    id: toPublic("msg_", row.id),
    direction: row.direction,
    thread_id: toPublic("thr_", row.thread_id),
    message_id: row.message_id,
    tag: row.tag,
    size: row.size,
    received_at: row.received_at,
    seen: row.seen,
    flagged: row.flagged,
    labels: row.labels,
    cc: summary.cc,
    to: summary.to,
    bcc: summary.bcc,
    from: summary.from,
    origin: summary.origin,
    snippet: summary.snippet,
    subject: summary.subject,
    reply_to: summary.reply_to,
    references: summary.references,
    attachments: summary.attachments,
    in_reply_to: summary.in_reply_to,
  }
}

const textOf = (value: string | null) => (value === null ? "null" : JSON.stringify(value))

/**
 * The JSON text of {@link summaryView}: what is kept of a message (`Summary`) has the members that lists show and no others,
 * so it stands there as it is.
 */
export const summaryText = (row: TextRow): string => {
  const id = toPublic("msg_", row.id)
  // Of most messages the thread has the message's own id.
  const thread = row.thread_id === row.id ? `thr_${id.slice(4)}` : toPublic("thr_", row.thread_id)
  return (
    `{"id":"${id}","direction":"${row.direction}","thread_id":"${thread}",` +
    `"message_id":${textOf(row.message_id)},"tag":${textOf(row.tag)},"size":${row.size},` +
    `"received_at":"${rfc3339(row.received_at)}","seen":${row.seen},"flagged":${row.flagged},` +
    `"labels":${row.labels.length === 0 ? "[]" : JSON.stringify(row.labels)},${row.summary.slice(1)}`
  )
}
