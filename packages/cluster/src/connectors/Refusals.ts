/** Converts platform failures to the problems that callers receive, and to the reasons for which a Connector stops. */
import { Moved } from "@svc/domain/actor/Protocol"
import {
  ConnectorCapabilityUnsupported,
  ConnectorCredentialRefused,
  ConnectorNotConnected,
  ConnectorOptionUnknown,
  ConnectorPaused,
  ConnectorPlatformError,
  ConnectorPlatformRateLimited,
  ConnectorStopped,
  InvalidRequest,
  NotFound,
} from "@svc/domain/problems/Problem"
import { boundedWords } from "./platforms/ResponseBounds.ts"
import type { PlatformFailure } from "./platforms/Failure.ts"
import type { Platform } from "./platforms/Platform.ts"

const secondsUntil = (until: Date | null, now: number): number =>
  until === null ? 60 : Math.max(1, Math.ceil((until.getTime() - now) / 1000))

export const paused = () => new ConnectorPaused({ detail: "The Connector is paused." })
export const notConnected = (title: string) =>
  new ConnectorNotConnected({ detail: `The Identity is not connected to ${title}.` })
export const stopped = (error: string | null) =>
  new ConnectorStopped({ detail: error ?? "The platform rejects the Connector's credential." })

/** Failures that have the same meaning before and after connecting. */
type Other = Exclude<PlatformFailure, { readonly _tag: "CredentialRefused" | "Halted" }>

const otherwise = (title: string, failure: Other, now: number) => {
  switch (failure._tag) {
    case "PlatformRateLimited":
      return new ConnectorPlatformRateLimited({
        detail: `${title}: ${boundedWords(failure.message)}`,
        retry_after_seconds: secondsUntil(failure.until, now),
      })
    case "PlatformUnreachable":
      return new ConnectorPlatformError({
        detail: `${title}: ${boundedWords(failure.message)}`,
        retry_after_seconds: 10,
      })
    case "PlatformRefused":
      return failure.missing === true
        ? new NotFound({ detail: `${title}: ${boundedWords(failure.message)}` })
        : new ConnectorPlatformError({ detail: `${title}: ${boundedWords(failure.message)}`, agent_hint: "fix_call" })
    case "Unsupported":
      return new ConnectorCapabilityUnsupported({ detail: failure.message })
    case "InputRefused":
      return new InvalidRequest({
        detail: failure.message,
        errors: [{ path: failure.path, message: failure.message }],
      })
  }
}

/** Converts a failure of connecting an account. A pause does not block connecting. */
export const whileConnecting = (title: string, failure: PlatformFailure, now: number) => {
  switch (failure._tag) {
    case "CredentialRefused":
      return new ConnectorCredentialRefused({ detail: `${title}: ${boundedWords(failure.message)}` })
    case "Halted":
      return new Moved()
    default:
      return otherwise(title, failure, now)
  }
}

/** Converts a failure of a call through a connected account. */
export const whileConnected = (title: string, failure: PlatformFailure, now: number) => {
  switch (failure._tag) {
    case "CredentialRefused":
      return stopped(`${title}: ${boundedWords(failure.message)}`)
    case "Halted":
      return failure.reason === "paused" ? paused() : new Moved()
    default:
      return otherwise(title, failure, now)
  }
}

/** Converts a failure of posting, including unknown options. */
export const whilePosting = (title: string, failure: PlatformFailure, now: number) =>
  failure._tag === "InputRefused" && failure.unknownOption === true
    ? new ConnectorOptionUnknown({
        detail: failure.message,
        errors: [{ path: failure.path, message: failure.message }],
      })
    : whileConnected(title, failure, now)

/** Why a Connector stopped, and how to restart it. */
interface StopReason {
  readonly error: string
  readonly remedy: string
  /** Whether the profile is checked again, because the account holder may fix it there. */
  readonly recheck: boolean
}

const reconnect = (name: string) =>
  `Connect the account again: PUT /api/identities/{handle}/connectors/${name} or POST .../${name}/authorize.`

export const credentialRefused = ({ name, title }: Pick<Platform, "name" | "title">, message: string): StopReason => ({
  error: `${title}: ${boundedWords(message)}`,
  remedy: reconnect(name),
  recheck: false,
})

export const undeclared = ({ name, title }: Pick<Platform, "name" | "title">): StopReason => ({
  error: `The profile at ${title} no longer says that the account is automated.`,
  remedy: `Mark the account as automated in its profile, which is checked every hour. Or: ${reconnect(name)} With apply_disclosure, the service marks it.`,
  recheck: true,
})
