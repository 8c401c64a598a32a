/**
 * The port that makes the envelope sender of what leaves: an address of our own mail domain to which a bounce comes back,
 * and which tells, signed, what bounced. The mail gateway makes it and reads it; the outbox asks for one at each attempt,
 * so the same row always has the same.
 */
import { Context } from "effect"

/** What a bounce address stands for. */
export interface Sent {
  /** The uuid of the message. */
  readonly messageId: string
  /** The row of the outbox: the message for the recipients of one domain. */
  readonly outboxId: string
  /** The canonical Handle of the Identity that sent it. */
  readonly mailbox: string
}

export class EnvelopeSender extends Context.Service<EnvelopeSender, { readonly of: (sent: Sent) => string }>()(
  "@svc/cluster/mail/sending/EnvelopeSender",
) {}
