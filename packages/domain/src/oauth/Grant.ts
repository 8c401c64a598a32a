/** A Grant: what an account holder allows a client, until when. Rights live here and nowhere in its tokens. */
import { Schema } from "effect"
import { AskedNetworks } from "../account/KeyRights.ts"
import { HandleText } from "../handles/HandleParam.ts"
import { Uuid } from "../IdSchemas.ts"
import { Text } from "../Text.ts"
import { NamedTime, Timestamp, TimestampOrNull } from "../Timestamp.ts"

/** Why a Grant ended: by its holder, its client, a token or code used twice, its time, or with what it was for. */
export const GrantEnd = Schema.Literals(["holder", "client", "refresh_reuse", "code_reuse", "expired", "account"])
export type GrantEnd = typeof GrantEnd.Type

export const Grant = Schema.Struct({
  id: Uuid,
  client_id: Schema.String,
  /** As the client calls itself; nobody has checked it. */
  client_name: Schema.String,
  /** Where its codes went to: a host, `localhost` for a program, `cursor:` for an app. This much is proved. */
  redirect_host: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** Handles of the Identities it may act on; null for the whole account, those to come included. */
  handles: Schema.NullOr(Schema.Array(Schema.String)),
  /** Where the app may call from; null for everywhere. */
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  created_at: Timestamp,
  expires_at: Timestamp,
  /** Written at most once a minute. */
  last_used_at: TimestampOrNull,
  last_used_address: Schema.NullOr(Schema.String),
}).annotate({ identifier: "Grant" })
export type Grant = typeof Grant.Type

export const GrantPatch = Schema.Struct({
  scopes: Schema.optionalKey(Schema.Array(Text.check(Schema.isMaxLength(50))).check(Schema.isMaxLength(100))),
  handles: Schema.optionalKey(
    Schema.NullOr(Schema.Array(HandleText).check(Schema.isMinLength(1), Schema.isMaxLength(200))),
  ),
  networks: Schema.optionalKey(Schema.NullOr(AskedNetworks)),
  expires_at: Schema.optionalKey(NamedTime),
})
export type GrantPatch = typeof GrantPatch.Type
