/** The port that writes a message: its parts, its header fields and the AI disclosure; the mail gateway implements it. */
import type { MessageInvalid, MessageTooLarge } from "@svc/domain/problems/Problem"
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import type { Attachment } from "@svc/domain/mail/Message"
import type { OutgoingAttachment } from "@svc/domain/mail/Sending"
import { Context, type Effect } from "effect"

/** What is to be written. Addresses are one addr-spec each, message ids are checked. */
export interface Letter {
  readonly messageId: string
  readonly date: Date
  readonly from: string
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
  readonly snippet: string
  readonly attachments: ReadonlyArray<Attachment>
}

export class Composer extends Context.Service<
  Composer,
  { readonly compose: (letter: Letter) => Effect.Effect<Composed, MessageInvalid | MessageTooLarge> }
>()("@svc/cluster/mail/sending/Composer") {}
