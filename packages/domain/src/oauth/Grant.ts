/**
 * A Grant: the rights that an account holder gives a client, and their expiry. Rights are stored here and never in
 * tokens.
 */
import { Schema } from "effect"
import { RequestedNetworks } from "../account/KeyRights.ts"
import { HandleText } from "../handles/HandleParam.ts"
import { Uuid } from "../IdSchemas.ts"
import { Text } from "../Text.ts"
import { NamedTime, Timestamp, TimestampOrNull } from "../Timestamp.ts"

/**
 * Why a Grant ended: revoked by its holder or its client, reuse of a token or code, expiry, or deletion of its account.
 */
export const GrantEnd = Schema.Literals(["holder", "client", "refresh_reuse", "code_reuse", "expired", "account"])
export type GrantEnd = typeof GrantEnd.Type

export const Grant = Schema.Struct({
  id: Uuid,
  client_id: Schema.String,
  /** The name that the client gives itself, unverified. */
  client_name: Schema.String,
  /**
   * The receiver of its codes: a host, `localhost` for a program, `cursor:` for an app. Unlike the name, it is verified.
   */
  redirect_host: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** Handles of the Identities it may act on; null for the whole account, including future Identities. */
  handles: Schema.NullOr(Schema.Array(Schema.String)),
  /** Networks from which the app may call; null for no restriction. */
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  created_at: Timestamp,
  expires_at: Timestamp,
  /** Updated at most once a minute. */
  last_used_at: TimestampOrNull,
  last_used_address: Schema.NullOr(Schema.String),
}).annotate({ identifier: "Grant" })
export type Grant = typeof Grant.Type

export const GrantPatch = Schema.Struct({
  scopes: Schema.optionalKey(Schema.Array(Text.check(Schema.isMaxLength(50))).check(Schema.isMaxLength(100))),
  handles: Schema.optionalKey(
    Schema.NullOr(Schema.Array(HandleText).check(Schema.isMinLength(1), Schema.isMaxLength(200))),
  ),
  networks: Schema.optionalKey(Schema.NullOr(RequestedNetworks)),
  expires_at: Schema.optionalKey(NamedTime),
})
export type GrantPatch = typeof GrantPatch.Type
