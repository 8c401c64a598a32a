/** Signatures of web requests (RFC 9421) in the profile of Web Bot Auth, with which an agent proves who it is to a site. */
import { Schema } from "effect"
import { Line, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

/** Seconds for which a signature is valid. */
export const signatureSeconds = 60

/** Maximum number of header fields that a signature covers besides those that the service adds. */
export const coveredAtMost = 20

const Url = Text.check(Schema.isMaxLength(8192))
const Token = Text.check(
  Schema.isMaxLength(32),
  Schema.isPattern(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/u, { expected: "an HTTP method" }),
)

export const NewSignature = Schema.Struct({
  method: Token,
  url: Url,
  /** Further header fields of the request that the signature covers. */
  headers: Schema.optionalKey(Schema.Record(Schema.String, Line(4096))),
  /** The digest of the body as a `Content-Digest` (RFC 9530), which the signature covers. */
  content_digest: Schema.optionalKey(Line(500)),
}).annotate({ identifier: "NewSignature" })
export type NewSignature = typeof NewSignature.Type

export const RequestSignature = Schema.Struct({
  headers: Schema.Record(Schema.String, Schema.String),
  expires_at: Timestamp,
}).annotate({ identifier: "RequestSignature" })
