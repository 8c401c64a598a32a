/** The expected failures of a platform. Any other error is a defect and becomes `internal`. */
import { Schema } from "effect"

/** The platform rejected the account's credential. The Connector stops until it is connected again. */
export class CredentialRefused extends Schema.TaggedError<CredentialRefused>()("CredentialRefused", {
  /** The platform's own error message. */
  message: Schema.String,
}) {}

/** The platform asked for fewer calls. */
export class PlatformRateLimited extends Schema.TaggedError<PlatformRateLimited>()("PlatformRateLimited", {
  message: Schema.String,
  /** When calls are accepted again, or null if the platform did not say. */
  until: Schema.NullOr(Schema.Date),
}) {}

/** The platform sent no valid response. The same call may succeed later. */
export class PlatformUnreachable extends Schema.TaggedError<PlatformUnreachable>()("PlatformUnreachable", {
  message: Schema.String,
}) {}

/** The platform rejected the call. Repeating it would be rejected too. */
export class PlatformRefused extends Schema.TaggedError<PlatformRefused>()("PlatformRefused", {
  message: Schema.String,
  /** The requested post or account does not exist. */
  missing: Schema.optionalKey(Schema.Boolean),
}) {}

/** The connected account or its server does not support the call. */
export class Unsupported extends Schema.TaggedError<Unsupported>()("Unsupported", { message: Schema.String }) {}

/** The input is invalid, as found before any call. `path` is a JSON Pointer into the request body. */
export class InputRefused extends Schema.TaggedError<InputRefused>()("InputRefused", {
  message: Schema.String,
  path: Schema.String,
  /** The platform does not have this option; reported as `connector_option_unknown`. */
  unknownOption: Schema.optionalKey(Schema.Boolean),
}) {}

/** The Connector was paused during the call, or another process owns it now. No further request leaves. */
export class Halted extends Schema.TaggedError<Halted>()("Halted", { reason: Schema.Literals(["paused", "moved"]) }) {}

export type PlatformFailure =
  | CredentialRefused
  | PlatformRateLimited
  | PlatformUnreachable
  | PlatformRefused
  | Unsupported
  | InputRefused
  | Halted

const tags = new Set<unknown>([
  "CredentialRefused",
  "PlatformRateLimited",
  "PlatformUnreachable",
  "PlatformRefused",
  "Unsupported",
  "InputRefused",
  "Halted",
] satisfies ReadonlyArray<PlatformFailure["_tag"]>)

/** Returns whether an error is a platform failure. */
export const isFailure = (error: unknown): error is PlatformFailure =>
  typeof error === "object" && error !== null && "_tag" in error && tags.has(error._tag)
