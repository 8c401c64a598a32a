/** The state of one session, which its commands share, and the results of commands. */
import { Effect } from "effect"
import * as MailboxName from "../protocol/MailboxName.ts"
import type * as Sets from "../protocol/Sets.ts"
import * as Strings from "../protocol/Strings.ts"
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
  `${tag} ${status} ${code === undefined ? "" : `[${code}] `}${Strings.human(text)}\r\n`

export interface Selected {
  readonly folder: Folder
  readonly readOnly: boolean
  readonly view: View
  /** The change counter that the client is synchronized to. */
  modseq: number
  uidNext: number
  /** UIDs that are recent in this session (RFC 3501 section 2.3.2); empty for IMAP4rev2. */
  readonly recent: Set<number>
  /** The saved result of the last SEARCH as UIDs. */
  saved: Sets.Ranges
  /** Changes already sent in the response to the client's own command, as UID and change counter. */
  readonly reported: Map<number, number>
  /** UIDs that the client changed with SILENT, until the next synchronization. */
  readonly silenced: Set<number>
  /** Keywords that the client knows. */
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
  /** Whether something changed since the last synchronization. */
  dirty = false
  /** Maximum bytes of an appended message. */
  readonly appendLimit: number
  /** The large message that was received last. */
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

  /** Enables CONDSTORE. If a mailbox is selected, its change counter is sent once (RFC 7162 section 3.1). */
  wantsChanges(): void {
    if (this.condstore) return
    this.condstore = true
    if (this.selected !== undefined) this.write(`* OK [HIGHESTMODSEQ ${this.selected.modseq}] Highest\r\n`)
  }

  /** Buffers text until there is enough to send. */
  write(text: string): void {
    this.#held.push(text)
    this.#heldLength += text.length
  }

  get isFull(): boolean {
    return this.#heldLength > 32 * 1024
  }

  /** Sends the buffer and waits if the client reads slowly. */
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

  /** Writes raw bytes; small ones are buffered with the surrounding text. */
  raw(bytes: Uint8Array): Effect.Effect<void> {
    if (bytes.length > fewBytes) return Effect.andThen(this.flush, this.#send(bytes))
    this.#held.push(bytes)
    this.#heldLength += bytes.length
    this.#holdsBytes = true
    return this.isFull ? this.flush : Effect.void
  }

  /** Encodes a mailbox name for this client. */
  name(name: string): string {
    if (!this.utf8) return Strings.astring(MailboxName.encode(name))
    return /^[\x20-\x7e]*$/.test(name) ? Strings.astring(name) : `"${name.replace(/["\\]/g, "\\$&")}"`
  }
}
