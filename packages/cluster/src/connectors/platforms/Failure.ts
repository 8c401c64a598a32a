/** How a platform can fail: the whole vocabulary. Anything else is a defect and ends as `internal`. */
import { Schema } from "effect"

/** The account's credential is not good any more, or never was: the Connector stops until it is connected again. */
export class CredentialRefused extends Schema.TaggedError<CredentialRefused>()("CredentialRefused", {
  /** The platform's own words. */
  message: Schema.String,
}) {}

/** The platform wants to be left alone for a while. */
export class PlatformRateLimited extends Schema.TaggedError<PlatformRateLimited>()("PlatformRateLimited", {
  message: Schema.String,
  /** When it takes calls again; null where it did not say. */
  until: Schema.NullOr(Schema.Date),
}) {}

/** No answer, or one that is none of the platform's: the same call may succeed later. */
export class PlatformUnreachable extends Schema.TaggedError<PlatformUnreachable>()("PlatformUnreachable", {
  message: Schema.String,
}) {}

/** The platform understood the call and refuses it, with its own words; the same call would be refused again. */
export class PlatformRefused extends Schema.TaggedError<PlatformRefused>()("PlatformRefused", {
  message: Schema.String,
  /** What was asked for does not exist there (a post, an account). */
  missing: Schema.optionalKey(Schema.Boolean),
}) {}

/** The connected account cannot do that there. */
export class Unsupported extends Schema.TaggedError<Unsupported>()("Unsupported", { message: Schema.String }) {}

/** What was given is not valid, found before any call; `path` is a JSON Pointer into the request's body. */
export class InputRefused extends Schema.TaggedError<InputRefused>()("InputRefused", {
  message: Schema.String,
  path: Schema.String,
  /** An option that the platform does not know: `connector_option_unknown`. */
  unknownOption: Schema.optionalKey(Schema.Boolean),
}) {}

/** The Connector was paused while the call was on its way, or another process has taken it over: nothing more leaves. */
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

/** Tells a platform's failure from any other. */
export const isFailure = (error: unknown): error is PlatformFailure =>
  typeof error === "object" && error !== null && "_tag" in error && tags.has(error._tag)
