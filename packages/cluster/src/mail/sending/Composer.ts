/** The port that composes messages: body parts, header fields and the AI disclosure. The mail gateway implements it. */
import type { MessageInvalid, MessageTooLarge, Unavailable } from "@svc/domain/problems/Problem"
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import type { Address, Attachment } from "@svc/domain/mail/Message"
import type { OutgoingAttachment } from "@svc/domain/mail/Sending"
import { Context, type Effect } from "effect"

/** The content of a new message. Each address is one addr-spec; message ids are valid. */
export interface Letter {
  readonly messageId: string
  readonly date: Date
  readonly from: Address
  readonly to: ReadonlyArray<string>
  readonly cc: ReadonlyArray<string>
  readonly subject: string
  /** At least one of `text` and `html`; the missing one is derived from the other. */
  readonly text: string | undefined
  readonly html: string | undefined
  readonly inReplyTo: string | null
  readonly references: ReadonlyArray<string>
  readonly attachments: ReadonlyArray<OutgoingAttachment>
  readonly headers: Readonly<Record<string, string>>
  /** The DID of the Identity, for the field `Agent-Identity`. */
  readonly did: string
  readonly disclosure: string
  readonly language: string
}

/** A composed message in the form that is sent and stored. */
export interface Composed {
  readonly content: Content
  /** SHA-256 of the bytes. */
  readonly sha256: Uint8Array
  readonly snippet: string
  readonly attachments: ReadonlyArray<Attachment>
}

/** A message submitted by a mail client, and the data needed to rewrite it. */
export interface SubmittedMessage {
  readonly raw: Uint8Array
  /** The required author: From must be this Identity, and replies go to it. */
  readonly author: { readonly address: string; readonly canonical: string; readonly domain: string }
  /** Used if the message has no valid Message-ID or Date. */
  readonly messageId: string
  readonly date: Date
  /** The DID of the Identity, for the field `Agent-Identity`. */
  readonly did: string
  readonly disclosure: string
  readonly language: string
}

/** The header values of a rewritten message. */
export interface Rewritten extends Composed {
  readonly messageId: string
  readonly from: Address
  readonly to: ReadonlyArray<Address>
  readonly cc: ReadonlyArray<Address>
  readonly replyTo: ReadonlyArray<Address>
  readonly subject: string
  readonly inReplyTo: string | null
  readonly references: ReadonlyArray<string>
  /** Hash of its Message-ID and content, independent of MIME structure; null if the client set no Message-ID. */
  readonly fingerprint: Uint8Array | null
}

type Refusal = MessageInvalid | MessageTooLarge | Unavailable

export class Composer extends Context.Service<
  Composer,
  {
    readonly compose: (letter: Letter) => Effect.Effect<Composed, Refusal>
    /** Extracts the content of the message and composes it again with the disclosure. */
    readonly rewrite: (manuscript: SubmittedMessage) => Effect.Effect<Rewritten, Refusal>
  }
>()("@svc/cluster/mail/sending/Composer") {}
