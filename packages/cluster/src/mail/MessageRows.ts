/**
 * Maps stored messages to list entries. Rows hold what `Acceptance` wrote, so they are not validated again. A page is
 * sent as the JSON text that the database stores ({@link summaryText}): decoding and encoding it again took an eighth
 * of the time of a page.
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
  readonly tags: ReadonlyArray<string>
  readonly message_id: string | null
  readonly size: number
  readonly summary: StoredSummary
  readonly received_at: Date
  readonly seen: boolean
  readonly flagged: boolean
  readonly labels: ReadonlyArray<string>
}

/** Columns of `message m` for {@link summaryView}. */
export const columns = (sql: Sql): Statement.Fragment =>
  sql`m.id, m.uid, m.direction, m.thread_id, m.tag, m.tags, m.message_id, m.size, m.summary, m.received_at, m.seen, m.flagged, m.labels`

/** A row whose summary is JSON text. */
export interface TextRow extends Omit<SummaryRow, "summary"> {
  readonly summary: string
}

/** Columns of `message m` for {@link summaryText}. */
export const textColumns = (sql: Sql): Statement.Fragment =>
  sql`m.id, m.uid, m.direction, m.thread_id, m.tag, m.tags, m.message_id, m.size, m.summary::text as summary, m.received_at,
      m.seen, m.flagged, m.labels`

/**
 * Converts a row to its API form. Members are listed one by one in the order of {@link summaryText}, so that a response
 * has exactly the members of its schema.
 */
export const summaryView = (row: SummaryRow): MessageSummary => {
  const { summary } = row
  return {
    id: toPublic("msg_", row.id),
    direction: row.direction,
    thread_id: toPublic("thr_", row.thread_id),
    message_id: row.message_id,
    tag: row.tag,
    tags: row.tags,
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

const listOf = (values: ReadonlyArray<string>) => (values.length === 0 ? "[]" : JSON.stringify(values))

/**
 * Returns the JSON text of {@link summaryView}. The stored summary (`Summary`) has exactly the members of a list entry,
 * so its text is used unchanged.
 */
export const summaryText = (row: TextRow): string => {
  const id = toPublic("msg_", row.id)
  // The thread of most messages has the id of the message.
  const thread = row.thread_id === row.id ? `thr_${id.slice(4)}` : toPublic("thr_", row.thread_id)
  return (
    `{"id":"${id}","direction":"${row.direction}","thread_id":"${thread}",` +
    `"message_id":${textOf(row.message_id)},"tag":${textOf(row.tag)},"tags":${listOf(row.tags)},"size":${row.size},` +
    `"received_at":"${rfc3339(row.received_at)}","seen":${row.seen},"flagged":${row.flagged},` +
    `"labels":${listOf(row.labels)},${row.summary.slice(1)}`
  )
}
