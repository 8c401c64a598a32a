/** What is kept of a connection, as JSON in the Connector's sealed row. */
import type { NodeSavedSession } from "@atproto/oauth-client-node"
import { Effect, Redacted, Schema } from "effect"
import { CredentialRefused } from "../Failure.ts"
import type { Credential, Session } from "../Platform.ts"

/** The tokens of a session. The app password itself is not kept: what was not stored cannot leak, and refreshes do without. */
export const PasswordTokens = Schema.Struct({
  kind: Schema.Literal("app_password"),
  /** The server that the session is at. */
  service: Schema.String,
  did: Schema.String,
  handle: Schema.String,
  accessJwt: Schema.String,
  refreshJwt: Schema.String,
})
export type PasswordTokens = typeof PasswordTokens.Type

/** The library's own record of an OAuth session: the DPoP key, how we authenticate, the tokens. */
const OAuthTokens = Schema.Struct({
  kind: Schema.Literal("oauth"),
  saved: Schema.declare<NodeSavedSession>(
    (saved): saved is NodeSavedSession =>
      typeof saved === "object" && saved !== null && "tokenSet" in saved && "dpopJwk" in saved,
  ),
})
export type OAuthTokens = typeof OAuthTokens.Type

const Tokens = Schema.fromJsonString(Schema.Union([PasswordTokens, OAuthTokens]))
export type Tokens = typeof Tokens.Type

const decode = Schema.decodeEffect(Tokens)

export const seal = (tokens: Tokens): Credential => Redacted.make(JSON.stringify(tokens))

/** What the Connector holds now. */
export const open = (session: Session) =>
  Effect.flatMap(session.credential, (credential) =>
    Effect.mapError(
      decode(Redacted.value(credential)),
      () => new CredentialRefused({ message: "The stored credential cannot be read. Connect the account again." }),
    ),
  )
