/**
 * The port that delivers mail within our own mail domain. The mail gateway accepts it like mail received over SMTP,
 * except that the sender needs no authentication.
 */
import { Context, type Effect } from "effect"
import type { Outcome, Transmission } from "./MailTransport.ts"

export class InsideDelivery extends Context.Service<
  InsideDelivery,
  {
    /** Our own mail domain in lower case. */
    readonly domain: string
    readonly deliver: (transmission: Transmission) => Effect.Effect<ReadonlyArray<Outcome>>
  }
>()("@svc/cluster/mail/sending/InsideDelivery") {}
