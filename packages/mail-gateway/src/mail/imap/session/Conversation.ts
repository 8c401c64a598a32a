/** The state of one session, which its commands share, and how a command ends. */
import { Effect } from "effect"
import * as MailboxName from "../protocol/MailboxName.ts"
import type * as Sets from "../protocol/Sets.ts"
import * as Writing from "../protocol/Writing.ts"
import type { Folder, Store } from "./Store.ts"
import type * as Spool from "./Spool.ts"
import type { View } from "./View.ts"

/** The tagged response. */
export interface Completion {
  readonly status: "OK" | "NO" | "BAD"
  readonly code?: string
  readonly text: string
}

export const ok = (text: string, code?: string): Completion => ({
  status: "OK",
  text,
  ...(code === undefined ? {} : { code }),
})
export const no = (text: string, code?: string): Completion => ({
  status: "NO",
  text,
  ...(code === undefined ? {} : { code }),
})
export const bad = (text: string, code?: string): Completion => ({
  status: "BAD",
  text,
  ...(code === undefined ? {} : { code }),
})

export const writeCompletion = (tag: string, { status, code, text }: Completion): string =>
  `${tag} ${status} ${code === undefined ? "" : `[${code}] `}${Writing.human(text)}\r\n`

export interface Selected {
  readonly folder: Folder
  readonly readOnly: boolean
  readonly view: View
  /** The change counter up to which the client was told. */
  modseq: number
  uidNext: number
  /** UIDs of messages of which this session was told as the first (RFC 3501 section 2.3.2); none for IMAP4rev2. */
  readonly recent: Set<number>
  /** What the last SEARCH saved, as UIDs. */
  saved: Sets.Ranges
  /** Changes that the client was told with the answer to its own command: UID and change. */
  readonly told: Map<number, number>
  /** Changes that the client made and does not want to hear of: UIDs, until the next look. */
  readonly silenced: Set<number>
  /** Keywords the client was told of. */
  readonly keywords: Set<string>
}

const fewBytes = 16 * 1024

export class Conversation {
  store: Store | undefined
  selected: Selected | undefined
  rev2 = false
  utf8 = false
  condstore = false
  qresync = false
  idling: string | undefined
  /** Something changed since the last look. */
  dirty = false
  /** Bytes of a message that can be appended. */
  readonly appendLimit: number
  /** The large message that came last. */
  readonly aside: ReturnType<typeof Spool.aside>
  readonly #send: (bytes: string | Uint8Array) => Effect.Effect<void>
  #held: Array<string | Uint8Array> = []
  #holdsBytes = false
  #heldLength = 0

  constructor(
    send: (bytes: string | Uint8Array) => Effect.Effect<void>,
    appendLimit: number,
    aside: ReturnType<typeof Spool.aside>,
  ) {
    this.aside = aside
    this.#send = send
    this.appendLimit = appendLimit
  }

  /** RFC 7162 section 3.1: with a mailbox open its counter is told by the command that first asks for any. */
  wantsChanges(): void {
    if (this.condstore) return
    this.condstore = true
    if (this.selected !== undefined) this.write(`* OK [HIGHESTMODSEQ ${this.selected.modseq}] Highest\r\n`)
  }

  /** Keeps text until it is worth sending. */
  write(text: string): void {
    this.#held.push(text)
    this.#heldLength += text.length
  }

  get isFull(): boolean {
    return this.#heldLength > 32 * 1024
  }

  /** Waits for a reader that is slower than we are. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#held.length === 0) return Effect.void
    const all = this.#holdsBytes
      ? Buffer.concat(this.#held.map((one) => (typeof one === "string" ? Buffer.from(one) : one)))
      : this.#held.join("")
    this.#held = []
    this.#heldLength = 0
    this.#holdsBytes = false
    return this.#send(all)
  })

  /** Bytes as they are; few of them leave with what is around them. */
  raw(bytes: Uint8Array): Effect.Effect<void> {
    if (bytes.length > fewBytes) return Effect.andThen(this.flush, this.#send(bytes))
    this.#held.push(bytes)
    this.#heldLength += bytes.length
    this.#holdsBytes = true
    return this.isFull ? this.flush : Effect.void
  }

  /** A mailbox's name as this client reads it. */
  name(name: string): string {
    if (!this.utf8) return Writing.astring(MailboxName.encode(name))
    return /^[\x20-\x7e]*$/.test(name) ? Writing.astring(name) : `"${name.replace(/["\\]/g, "\\$&")}"`
  }
}
