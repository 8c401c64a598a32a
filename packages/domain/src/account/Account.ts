/** Schemas of Org, session, Terms, caller and API key (interface.md "Resources and their fields"). */
import { Schema } from "effect"
import { Uuid } from "../IdSchemas.ts"
import { ShownEmail, ShownUrl, Text } from "../Text.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"
import { VersionDate } from "../Versions.ts"

export const languages = ["en", "de", "fr"] as const
export const Language = Schema.Literals(languages)
export type Language = typeof Language.Type

/** An email address of at most 254 octets (RFC 5321 section 4.5.3.1). Addresses are compared in lower case. */
export const EmailAddress = Schema.String.annotate({ format: "email" }).check(
  Schema.isMaxLength(254),
  Schema.isPattern(
    /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/u,
    {
      expected: "an email address",
    },
  ),
)

export const Org = Schema.Struct({
  id: Uuid,
  email: ShownEmail,
  language: Language,
  api_version: VersionDate,
  tos_version: Schema.String,
  tos_accepted_at: Timestamp,
  email_verified_at: TimestampOrNull,
  created_at: Timestamp,
}).annotate({ identifier: "Org" })
export type Org = typeof Org.Type

export const Session = Schema.Struct({ id: Uuid, expires_at: Timestamp, created_at: Timestamp }).annotate({
  identifier: "Session",
})
export type Session = typeof Session.Type

/** A session as it appears in the account holder's list of sessions. */
export const ListedSession = Schema.Struct({
  ...Session.fields,
  /** Updated at most once a minute. */
  last_used_at: Timestamp,
  /** The `User-Agent` of the sign-in; null if the client sent none. */
  user_agent: Schema.NullOr(Schema.String),
  /** Whether the request uses this session. */
  current: Schema.Boolean,
}).annotate({ identifier: "ListedSession" })
export type ListedSession = typeof ListedSession.Type

export const TermsStatus = Schema.Struct({
  current_version: Schema.String,
  accepted_version: Schema.String,
  accepted_at: Timestamp,
  effective_at: TimestampOrNull,
  gated: Schema.Boolean,
}).annotate({ identifier: "TermsStatus" })
export type TermsStatus = typeof TermsStatus.Type

/** The kind of a credential. A `grant` is the access of an app by OAuth. */
export const CredentialKind = Schema.Literals(["session", "admin_key", "identity_key", "grant"])
export type CredentialKind = typeof CredentialKind.Type

export const CallerView = Schema.Struct({
  kind: CredentialKind,
  key_id: Schema.NullOr(Uuid),
  key_name: Schema.NullOr(Schema.String),
  identity_id: Schema.NullOr(Uuid),
  handle: Schema.NullOr(Schema.String),
  /** Identities that the credential may act on; null for all Identities of the Org, including future ones. */
  handles: Schema.NullOr(Schema.Array(Schema.String)),
  /** `*` means all scopes. */
  scopes: Schema.Array(Schema.String),
  /** Addresses and CIDR ranges from which the credential may be used; null for no restriction. */
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  /** When a key or grant expires; null if it does not, and for a session. */
  expires_at: TimestampOrNull,
  /** The grant and its app; null for other credentials. */
  grant_id: Schema.NullOr(Schema.String),
  client: Schema.NullOr(Schema.String),
}).annotate({ identifier: "CallerView" })
export type CallerView = typeof CallerView.Type

export const ApiKey = Schema.Struct({
  id: Uuid,
  name: Schema.String,
  scope: Schema.Literals(["org", "identity"]),
  identity_id: Schema.NullOr(Uuid),
  token_prefix: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** Null for no restriction. */
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  created_at: Timestamp,
  /** Null if the key does not expire. */
  expires_at: TimestampOrNull,
  last_used_at: TimestampOrNull,
  last_used_address: Schema.NullOr(Schema.String),
  /** The key that replaces this one; this one stays valid until it expires. */
  replaced_by: Schema.NullOr(Uuid),
  revoked_at: TimestampOrNull,
}).annotate({ identifier: "ApiKey" })
export type ApiKey = typeof ApiKey.Type

export const MagicLinkRequest = Schema.Struct({
  email: EmailAddress,
  language: Schema.optionalKey(Language),
  tos_accepted: Schema.optionalKey(Schema.Boolean),
  invite_code: Schema.optionalKey(Text.check(Schema.isMaxLength(200))),
})
export type MagicLinkRequest = typeof MagicLinkRequest.Type

export const MagicLinkAnswer = Schema.Struct({
  status: Schema.Literal("sent"),
  expires_at: Timestamp,
  dev_magic_link: Schema.NullOr(ShownUrl),
})

export const Registration = Schema.Struct({ state: Schema.Literals(["open", "invite", "closed"]) }).annotate({
  identifier: "Registration",
})
export type RegistrationState = (typeof Registration.Type)["state"]
