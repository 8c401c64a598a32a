/** The port for the service's own mail to people (sign-in links, the operator's mail); the mail gateway implements it. */
import { Context, Effect, Layer, Schema } from "effect"

/** The relay did not take the mail. */
export class PostmanUnavailable extends Schema.TaggedError<PostmanUnavailable>()("PostmanUnavailable", {
  message: Schema.String,
}) {}

export interface Letter {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
  readonly replyTo?: string
}

export class Postman extends Context.Service<
  Postman,
  {
    readonly send: (letter: Letter) => Effect.Effect<void, PostmanUnavailable>
    /** Sends a message on as it is. */
    readonly forward: (mail: {
      readonly to: string
      readonly raw: Uint8Array
    }) => Effect.Effect<void, PostmanUnavailable>
  }
>()("@svc/cluster/account/Postman") {
  /** Development without a relay: the answer carries the link, so nothing needs to be mailed. */
  static readonly none = Layer.succeed(Postman, { send: () => Effect.void, forward: () => Effect.void })
}
