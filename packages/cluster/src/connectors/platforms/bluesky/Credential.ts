/** The credential of a connection, as JSON in the Connector's sealed row. */
import type { NodeSavedSession } from "@atproto/oauth-client-node"
import { Effect, Redacted, Schema } from "effect"
import { CredentialRefused } from "../Failure.ts"
import type { Credential, Session } from "../Platform.ts"

/** The tokens of a session. The app password itself is not stored, because refreshes do not need it. */
export const PasswordTokens = Schema.Struct({
  kind: Schema.Literal("app_password"),
  /** The origin of the session's server. */
  service: Schema.String,
  did: Schema.String,
  handle: Schema.String,
  accessJwt: Schema.String,
  refreshJwt: Schema.String,
})
export type PasswordTokens = typeof PasswordTokens.Type

/** The library's record of an OAuth session: the DPoP key, the client authentication and the tokens. */
const OAuthTokens = Schema.Struct({
  kind: Schema.Literal("oauth"),
  saved: Schema.declare<NodeSavedSession>(
    (saved): saved is NodeSavedSession =>
      typeof saved === "object" && saved !== null && "tokenSet" in saved && "dpopJwk" in saved,
  ),
})
export type OAuthTokens = typeof OAuthTokens.Type

const Tokens = Schema.fromJsonString(Schema.Union([PasswordTokens, OAuthTokens]))
type Tokens = typeof Tokens.Type

const decode = Schema.decodeEffect(Tokens)

export const seal = (tokens: Tokens): Credential => Redacted.make(JSON.stringify(tokens))

/** The failure of a call whose Connector was connected with the other kind of credential since it started. */
export const replaced = () =>
  new CredentialRefused({ message: "The account was connected again with another kind of credential." })

/** Decodes the Connector's current credential. */
export const open = (session: Session) =>
  Effect.flatMap(session.credential, (credential) =>
    Effect.mapError(
      decode(Redacted.value(credential)),
      () => new CredentialRefused({ message: "The stored credential cannot be read. Connect the account again." }),
    ),
  )
