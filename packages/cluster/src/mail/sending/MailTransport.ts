/**
 * The port through which outgoing mail leaves the service. The outbox decides what is tried and when, and keeps what came
 * of it; the mail gateway implements how: through a relay, or straight to the mail servers of a domain.
 */
import { Context, Effect, Layer } from "effect"

/** What a mail server said last about a recipient (RFC 5321 section 4.2, RFC 3463), or why none was heard. */
export interface SmtpReply {
  /** `250`; null where no reply came (no connection, no address, a time-out). */
  readonly code: number | null
  /** The enhanced status code, as in `5.1.1`; null where none was given. */
  readonly status: string | null
  /** One line in plain words, at most 500 characters. */
  readonly text: string
  /** Who said it; null where nobody was reached. */
  readonly host: string | null
  /** The command that the server replied to, `DATA` for the content as well; absent outside a transaction. */
  readonly command?: "MAIL" | "RCPT" | "DATA"
  /** Whether one reply was for several recipients. */
  readonly shared?: boolean
}

/**
 * `sent`: a server took it over. `deferred`: it may succeed later. `refused`: it never will. `held`: nothing was tried,
 * as `mayLeave` said no or nothing can carry it; that is no attempt.
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
  /** Made by `EnvelopeSender`. */
  readonly envelopeFrom: string
  /** Addresses, exactly one addr-spec each, their domain in A-labels. */
  readonly recipients: ReadonlyArray<string>
  /** The domain of all of them, lower case, in A-labels. */
  readonly domain: string
  /** RFC 5322 with CRLF and 7-bit bodies, not yet signed; the same at every attempt. */
  readonly content: Uint8Array
  /**
   * Asked right before DATA, and again once the permission has expired: where it is denied nothing may be sent, and the
   * outcome is `held`.
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
  /** `reason` is shown at what stays queued. */
  | { readonly by: "none"; readonly reason: string }

export class MailTransport extends Context.Service<
  MailTransport,
  {
    readonly carries: Carriage
    /** One outcome for each recipient, in their order; it never fails, and ends by itself in less than ten minutes. */
    readonly send: (transmission: Transmission) => Effect.Effect<ReadonlyArray<Outcome>>
  }
>()("@svc/cluster/mail/sending/MailTransport") {
  /** Development without a relay: mail to other domains stays where it is. */
  static readonly none = Layer.succeed(MailTransport, {
    carries: {
      by: "none",
      reason: "No relay is configured (SVC_SMTP_RELAY_URL), so mail to other domains stays here.",
    },
    send: ({ recipients }) =>
      Effect.succeed(recipients.map((recipient): Outcome => ({ recipient, state: "held", reply: null }))),
  })
}
