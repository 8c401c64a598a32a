/** The port for the service's own mail to people (sign-in links, the operator's mail); the mail gateway implements it. */
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Context, type Effect, Schema } from "effect"

/** The relay did not accept the mail. */
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
    /** Forwards a message unchanged. */
    readonly forward: (mail: { readonly to: string; readonly raw: Uint8Array }) => Effect.Effect<void, RelayUnavailable>
    /** Stores a letter in the operator's own Mailbox, where mail for `postmaster@` arrives. */
    readonly keep: (letter: Letter) => Effect.Effect<void, RelayUnavailable | Unavailable>
  }
>()("@svc/cluster/mail/SystemMailer") {}
