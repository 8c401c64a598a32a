/**
 * The port that delivers mail to our own mail domain without leaving: the mail gateway takes it in as it takes what comes
 * by SMTP, only that nobody has to judge where it is from.
 */
import { Context, type Effect } from "effect"
import type { Outcome, Transmission } from "./MailTransport.ts"

export class InsideDelivery extends Context.Service<
  InsideDelivery,
  {
    /** Our own mail domain, lower case. */
    readonly domain: string
    readonly deliver: (transmission: Transmission) => Effect.Effect<ReadonlyArray<Outcome>>
  }
>()("@svc/cluster/mail/sending/InsideDelivery") {}
