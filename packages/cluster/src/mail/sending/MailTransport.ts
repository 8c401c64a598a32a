/**
 * The ports through which outgoing mail leaves the service. The outbox decides what is attempted and when, and stores
 * the outcome. The mail gateway implements the delivery: through a relay, directly to the mail servers of a domain, or
 * within our own mail domain.
 */
import { Context, Effect, Layer } from "effect"

/**
 * The last reply of a mail server about a recipient (RFC 5321 section 4.2, RFC 3463), or the reason for a missing
 * reply.
 */
export interface SmtpReply {
  /** The reply code, such as `250`; null if there was no reply (no connection, no address, a timeout). */
  readonly code: number | null
  /** The enhanced status code, such as `5.1.1`; null if the server sent none. */
  readonly status: string | null
  /** A single line of at most 500 characters. */
  readonly text: string
  /** The host that replied; null if no host was reached. */
  readonly host: string | null
  /** The command that the server replied to, `DATA` for the content as well; absent outside a transaction. */
  readonly command?: "MAIL" | "RCPT" | "DATA"
  /** Whether the reply was for several recipients. */
  readonly shared?: boolean
}

/**
 * `sent`: a server accepted the message. `deferred`: a later attempt may succeed. `refused`: no attempt will succeed.
 * `held`: nothing was attempted, because `mayLeave` denied it or there is no transport; this does not count as an
 * attempt.
 */
export interface Outcome {
  readonly recipient: string
  readonly state: "sent" | "deferred" | "refused" | "held"
  readonly reply: SmtpReply | null
}

/** One message for the recipients of one domain. */
export interface Transmission {
  /** The public id (`msg_…`): the envelope id of a DSN (RFC 3461), and what log entries name. */
  readonly id: string
  /** Created by `EnvelopeSender`. */
  readonly envelopeFrom: string
  /** Recipient addresses, one addr-spec each, with the domain in A-labels. */
  readonly recipients: ReadonlyArray<string>
  /** The domain of all recipients, in lower case and A-labels. */
  readonly domain: string
  /** The unsigned message: RFC 5322 with CRLF and 7-bit bodies, identical in every attempt. */
  readonly content: Uint8Array
  /**
   * Requests permission to send, right before DATA and again when the permission has expired. If it is denied, nothing
   * may be sent and the outcome is `held`.
   */
  readonly mayLeave: Effect.Effect<boolean>
  /**
   * Whether the permission that `mayLeave` gave still holds. Look at it in the turn of the event loop in which DATA or
   * content is written: the process may have been frozen since it asked.
   */
  readonly isPermitted: () => boolean
}

/** How mail to other domains leaves this deployment. */
export type Carriage =
  | { readonly by: "relay" | "direct" }
  /** `reason` is shown with queued mail. */
  | { readonly by: "none"; readonly reason: string }

export class MailTransport extends Context.Service<
  MailTransport,
  {
    readonly carries: Carriage
    /**
     * Attempts a delivery and returns one outcome per recipient, in the same order. It never fails and ends within ten
     * minutes.
     */
    readonly send: (transmission: Transmission) => Effect.Effect<ReadonlyArray<Outcome>>
  }
>()("@svc/cluster/mail/sending/MailTransport") {
  /** Development without a relay: mail to other domains stays queued. */
  static readonly none = Layer.succeed(MailTransport, {
    carries: {
      by: "none",
      reason: "No relay is configured (SVC_SMTP_RELAY_URL), so mail to other domains stays queued.",
    },
    send: ({ recipients }) =>
      Effect.succeed(recipients.map((recipient): Outcome => ({ recipient, state: "held", reply: null }))),
  })
}

/**
 * Delivers mail within our own mail domain. The mail gateway accepts it like mail received over SMTP, except that the
 * sender needs no authentication.
 */
export class InsideDelivery extends Context.Service<
  InsideDelivery,
  {
    /** Our own mail domain in lower case. */
    readonly domain: string
    readonly deliver: (transmission: Transmission) => Effect.Effect<ReadonlyArray<Outcome>>
  }
>()("@svc/cluster/mail/sending/InsideDelivery") {}

/** The delivery that a bounce address identifies. */
interface DeliveryReference {
  /** The uuid of the message. */
  readonly messageId: string
  /** The outbox row: the message for the recipients of one domain. */
  readonly outboxId: string
  /** The canonical Handle of the Identity that sent it. */
  readonly mailbox: string
}

/**
 * Creates envelope senders: a signed bounce address in our own mail domain that identifies the delivery. The mail
 * gateway creates and verifies these addresses. The outbox requests one per attempt, and the same row always gets the
 * same address.
 */
export class EnvelopeSender extends Context.Service<
  EnvelopeSender,
  { readonly of: (sent: DeliveryReference) => string }
>()("@svc/cluster/mail/sending/EnvelopeSender") {}
