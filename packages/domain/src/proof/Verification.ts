/** Checks of what others present as proof: an identity token, an A2A card, or the head of a signed request. */
import { Schema } from "effect"
import { Line, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

const Url = Text.check(Schema.isMaxLength(8192))

export const NewVerification = Schema.Struct({
  /** An identity token (JWT). */
  token: Schema.optionalKey(Text.check(Schema.isMaxLength(16_384))),
  /** The audience that the token must have. */
  audience: Schema.optionalKey(Line(500)),
  /** An A2A card with its `signatures`. */
  card: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  card_url: Schema.optionalKey(Url.annotate({ description: "The address from which the card was read." })),
  /** The head of a request: its method, its absolute address and its header fields. */
  request: Schema.optionalKey(
    Schema.Struct({
      method: Line(32),
      url: Url,
      headers: Schema.Record(Schema.String, Text.check(Schema.isMaxLength(8192))),
    }),
  ),
}).annotate({ identifier: "NewVerification" })
export type NewVerification = typeof NewVerification.Type

/** Why a proof does not stand. */
export const VerificationReason = Schema.Literals([
  "unsigned",
  "malformed",
  "expired",
  "altered",
  "unknown_key",
  "unreadable_keys",
  "other_address",
  "other_audience",
  "identity_ended",
])
export type VerificationReason = typeof VerificationReason.Type

export const Verification = Schema.Struct({
  valid: Schema.Boolean,
  /** The signer; null if the proof is not valid. */
  agent: Schema.NullOr(
    Schema.Struct({
      /** The origin of a request's signer, the issuer of a token, or the address of a card's keys. */
      issuer: Schema.String,
      subject: Schema.NullOr(Schema.String),
      /** The Handle, if the agent is an Identity of this service. */
      handle: Schema.NullOr(Schema.String),
    }),
  ),
  /** The id of the key. */
  kid: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(VerificationReason),
  detail: Schema.NullOr(Schema.String),
  expires_at: Schema.NullOr(Timestamp),
}).annotate({ identifier: "Verification" })
export type Verification = typeof Verification.Type
