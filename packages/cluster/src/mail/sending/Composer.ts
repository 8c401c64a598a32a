/** The port that writes a message: its parts, its header fields and the AI disclosure; the mail gateway implements it. */
import type { MessageInvalid, MessageTooLarge, Unavailable } from "@svc/domain/problems/Problem"
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import type { Address, Attachment } from "@svc/domain/mail/Message"
import type { OutgoingAttachment } from "@svc/domain/mail/Sending"
import { Context, type Effect } from "effect"

/** What is to be written. Addresses are one addr-spec each, message ids are checked. */
export interface Letter {
  readonly messageId: string
  readonly date: Date
  readonly from: Address
  readonly to: ReadonlyArray<string>
  readonly cc: ReadonlyArray<string>
  readonly subject: string
  /** One of the two at least; the missing one is made of the other. */
  readonly text: string | undefined
  readonly html: string | undefined
  readonly inReplyTo: string | null
  readonly references: ReadonlyArray<string>
  readonly attachments: ReadonlyArray<OutgoingAttachment>
  readonly headers: Readonly<Record<string, string>>
  readonly disclosure: string
  readonly language: string
}

/** A message as it goes out and as it is kept. */
export interface Composed {
  readonly content: Content
  /** SHA-256 of the bytes. */
  readonly sha256: Uint8Array
  readonly snippet: string
  readonly attachments: ReadonlyArray<Attachment>
}

/** A message as a mail program wrote it, and what it becomes ours with. */
export interface Manuscript {
  readonly raw: Uint8Array
  /** Whose it must be: its author is this Identity, and answers come to it. */
  readonly author: { readonly address: string; readonly canonical: string; readonly domain: string }
  /** Where it names no id of its own, or none that can stand; and no time. */
  readonly messageId: string
  readonly date: Date
  readonly disclosure: string
  readonly language: string
}

/** What the message says of itself, as it goes out. */
export interface Rewritten extends Composed {
  readonly messageId: string
  readonly from: Address
  readonly to: ReadonlyArray<Address>
  readonly cc: ReadonlyArray<Address>
  readonly replyTo: ReadonlyArray<Address>
  readonly subject: string
  readonly inReplyTo: string | null
  readonly references: ReadonlyArray<string>
  /** Of its id and of what it says, whatever wraps it; null where it named no id of its own. */
  readonly fingerprint: Uint8Array | null
}

type Refusal = MessageInvalid | MessageTooLarge | Unavailable

export class Composer extends Context.Service<
  Composer,
  {
    readonly compose: (letter: Letter) => Effect.Effect<Composed, Refusal>
    /** Takes from the message what a person wrote, and writes it anew with the disclosure. */
    readonly rewrite: (manuscript: Manuscript) => Effect.Effect<Rewritten, Refusal>
  }
>()("@svc/cluster/mail/sending/Composer") {}
