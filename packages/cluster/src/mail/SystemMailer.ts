/** The port for the service's own mail to people (sign-in links, the operator's mail); the mail gateway implements it. */
import { Context, Effect, Layer, Schema } from "effect"

/** The relay did not take the mail. */
export class RelayUnavailable extends Schema.TaggedError<RelayUnavailable>()("RelayUnavailable", {
  message: Schema.String,
}) {}

export interface Letter {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
  readonly replyTo?: string
}

export class SystemMailer extends Context.Service<
  SystemMailer,
  {
    readonly send: (letter: Letter) => Effect.Effect<void, RelayUnavailable>
    /** Sends a message on as it is. */
    readonly forward: (mail: { readonly to: string; readonly raw: Uint8Array }) => Effect.Effect<void, RelayUnavailable>
  }
>()("@svc/cluster/mail/SystemMailer") {
  /** Development without a relay: the answer carries the link, so nothing needs to be mailed. */
  static readonly none = Layer.succeed(SystemMailer, { send: () => Effect.void, forward: () => Effect.void })
}
