/**
 * The port that creates envelope senders of outgoing mail: a signed bounce address in our own mail domain that
 * identifies the delivery. The mail gateway creates and verifies these addresses. The outbox requests one per attempt,
 * and the same row always gets the same address.
 */
import { Context } from "effect"

/** The delivery that a bounce address identifies. */
export interface DeliveryReference {
  /** The uuid of the message. */
  readonly messageId: string
  /** The outbox row: the message for the recipients of one domain. */
  readonly outboxId: string
  /** The canonical Handle of the Identity that sent it. */
  readonly mailbox: string
}

export class EnvelopeSender extends Context.Service<
  EnvelopeSender,
  { readonly of: (sent: DeliveryReference) => string }
>()("@svc/cluster/mail/sending/EnvelopeSender") {}
