/** Rows of folders and messages as the store gives them, and what the session knows of them. */
import { toPublic } from "@svc/domain/Ids"
import type { Structure } from "../../mime/Structure.ts"
import * as Flags from "../session/Flags.ts"
import type { Marked, Stored } from "../session/Store.ts"

export interface MarkRow extends Flags.Marks {
  readonly uid: number
  readonly modseq: number
}

export interface MessageRow extends MarkRow {
  readonly id: string
  readonly thread_id: string
  readonly size: number
  readonly received_at: Date
  readonly snippet: string
  readonly structure?: string | null
  /** Of a small message whose bytes are wanted. */
  readonly raw?: Uint8Array | null
}

export const marked = (row: MarkRow): Marked => ({ uid: row.uid, modseq: row.modseq, flags: Flags.shown(row) })

/** With the store's own id, by which its bytes are read. */
export interface Kept extends Stored {
  readonly key: string
  readonly raw: Uint8Array | undefined
}

export const stored = (row: MessageRow): Kept => ({
  ...marked(row),
  key: row.id,
  raw: row.raw ?? undefined,
  id: toPublic("msg_", row.id),
  threadId: toPublic("thr_", row.thread_id),
  size: row.size,
  at: row.received_at,
  snippet: row.snippet,
})

/** What was kept of the structure; undefined where it must be made again. */
export const structureOf = (text: string | null | undefined): Structure | undefined => {
  if (text === null || text === undefined || text === "") return undefined
  // We wrote it ourselves, by one writer.
  return JSON.parse(text) as Structure
}
