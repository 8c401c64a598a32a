/** Maps database rows of folders and messages to the session's types. */
import { toPublic } from "@svc/domain/Ids"
import type { Structure } from "../../mime/Structure.ts"
import * as Flags from "../session/Flags.ts"
import type { Detailed, Marked, Stored } from "../session/Store.ts"

export interface MarkRow extends Flags.Marks {
  readonly uid: number
  readonly modseq: number
}

export interface MessageRow extends MarkRow {
  readonly id: string
  readonly thread_id: string
  readonly size: number
  readonly received_at: Date
  readonly received_zone: number | null
  readonly snippet: string
  readonly structure?: string | null
  /** Set for a small message whose bytes were requested. */
  readonly raw?: Uint8Array | null
}

export const marked = (row: MarkRow): Marked => ({ uid: row.uid, modseq: row.modseq, flags: Flags.shown(row) })

/** A message with its internal id, by which its bytes are read. Public ids are computed on demand. */
export class StoredMessage implements Stored {
  readonly uid: number
  readonly modseq: number
  readonly flags: ReadonlyArray<string>
  readonly key: string
  readonly raw: Uint8Array | undefined
  readonly size: number
  readonly at: Date
  readonly zone: number
  readonly snippet: string
  readonly #thread: string

  constructor(row: MessageRow) {
    this.uid = row.uid
    this.modseq = row.modseq
    this.flags = Flags.shown(row)
    this.key = row.id
    this.raw = row.raw ?? undefined
    this.size = row.size
    this.at = row.received_at
    this.zone = row.received_zone ?? 0
    this.snippet = row.snippet
    this.#thread = row.thread_id
  }

  get id() {
    return toPublic("msg_", this.key)
  }

  get threadId() {
    return toPublic("thr_", this.#thread)
  }
}

/** A message with its structure, either just computed or stored and parsed on demand. */
export class DetailedMessage extends StoredMessage implements Detailed {
  readonly #text: string
  #structure: Structure | undefined

  constructor(row: MessageRow, made?: Structure) {
    super(row)
    this.#text = row.structure ?? ""
    this.#structure = made
  }

  get structure(): Structure {
    // Written only by our own code.
    this.#structure ??= JSON.parse(this.#text) as Structure
    return this.#structure
  }

  get envelope(): string {
    return this.structure.envelope
  }
}

/** Whether the structure is stored. */
export const hasStructure = ({ structure }: MessageRow): boolean =>
  structure !== null && structure !== undefined && structure !== ""

/** Flags of a page of messages, packed into one value: reading a row for each costs more than its content. */
export interface PackedMarks {
  /** For each message: UID (4 bytes), change counter (8) and flags (2, a bit for each of {@link bits}). */
  readonly packed: Uint8Array | null
  /** UID, labels and tags of messages that have any. */
  readonly labelled: string | null
}

const bits = ["seen", "flagged", "answered", "deleted", "draft"] as const
const record = 14

const unlabelled = Array.from({ length: 1 << bits.length }, (_, set) => {
  const [seen = false, flagged = false, answered = false, deleted = false, draft = false] = bits.map(
    (_, bit) => (set & (1 << bit)) !== 0,
  )
  return { seen, flagged, answered, deleted, draft, labels: [], tags: [] }
})
const unlabelledFlags = unlabelled.map(Flags.shown)

export const unpacked = ({ packed, labelled }: PackedMarks): ReadonlyArray<Marked> => {
  if (packed === null) return []
  // We wrote it ourselves, in the statement.
  const labels = (labelled === null ? [] : JSON.parse(labelled)) as ReadonlyArray<
    readonly [uid: number, labels: ReadonlyArray<string>, tags: ReadonlyArray<string>]
  >
  const of = new Map(labels.map(([uid, labels, tags]) => [uid, { labels, tags }]))
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength)
  return Array.from({ length: packed.byteLength / record }, (_, n) => {
    const at = n * record
    const uid = view.getInt32(at)
    const set = view.getInt16(at + 12)
    const more = of.get(uid)
    return {
      uid,
      modseq: view.getUint32(at + 4) * 2 ** 32 + view.getUint32(at + 8),
      flags: more === undefined ? unlabelledFlags[set]! : Flags.shown({ ...unlabelled[set]!, ...more }),
    }
  })
}
