/**
 * Runs calls of the atproto libraries: their requests use the {@link PlatformHttp} of the current call, and the errors
 * that they throw become platform failures.
 */
import { XRPCError } from "@atproto/api"
import {
  DidError,
  HandleResolverError,
  OAuthCallbackError,
  OAuthResolverError,
  OAuthResponseError,
  TokenInvalidError,
  TokenRefreshError,
  TokenRevokedError,
} from "@atproto/oauth-client-node"
import { isProblem } from "@svc/domain/problems/Problem"
import { type Context, Effect } from "effect"
import { boundedWords, hasMoreValues } from "../ResponseBounds.ts"
import {
  CredentialRefused,
  InputRefused,
  isFailure,
  type PlatformFailure,
  PlatformRateLimited,
  PlatformRefused,
  PlatformUnreachable,
  Unsupported,
} from "../Failure.ts"
import type { PlatformHttp } from "../PlatformHttp.ts"

export interface LibraryFetch {
  readonly fetch: typeof globalThis.fetch
  /** Runs a call of a library. */
  readonly call: <A>(run: () => Promise<A>) => Effect.Effect<A, PlatformFailure>
  /** Sets the cause of the call's failure. The library would report the original request's error instead of the refresh's. */
  readonly fail: (reason: unknown) => void
  /** Runs an effect for a library that expects a promise. */
  readonly runPromise: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  /** Returns whether a response had the status 401. */
  readonly unauthorized: () => boolean
  /** Returns the earliest time for the next request, if a response defined one. */
  readonly quietUntil: () => Date | undefined
}

/** Creates the library access for one call of a Connector. */
export const make = (http: PlatformHttp): Effect.Effect<LibraryFetch> =>
  Effect.map(Effect.context(), (context) => libraryFetch(http, context))

const libraryFetch = (http: PlatformHttp, context: Context.Context<never>): LibraryFetch => {
  let failed: { readonly reason: unknown } | undefined
  let unauthorized = false
  let limited: { readonly until: Date | null } | undefined
  let earliest: Date | undefined
  return {
    fetch: async (input, init) => {
      const response = await http.fetch(input, init)
      if (hasMoreValues(new Uint8Array(await response.clone().arrayBuffer()), maxValues)) {
        throw new PlatformUnreachable({
          message: `The response of ${new URL(response.url).host} contains too many values.`,
        })
      }
      const quiet = http.quietUntil()
      if (response.status === 401) unauthorized = true
      if (quiet !== undefined) earliest = quiet
      if (response.status === 429 || (response.status === 503 && quiet !== undefined)) {
        limited = { until: quiet ?? null }
      }
      return response
    },
    call: (run) => {
      limited = undefined
      return Effect.catch(Effect.tryPromise({ try: run, catch: (thrown) => thrown }), (thrown) => {
        const reason = failed === undefined ? thrown : failed.reason
        const chain = [...causes(reason)]
        // The service's own store is unavailable, which is not a failure of the platform.
        const problem = chain.find(isProblem)
        if (problem !== undefined) return Effect.die(problem)
        const failure = failureOf(reason, chain)
        const isRateLimited = failed === undefined && limited !== undefined && failure._tag !== "Halted"
        return Effect.fail(isRateLimited ? new PlatformRateLimited({ message: failure.message, ...limited! }) : failure)
      })
    },
    fail: (reason) => {
      failed = { reason }
    },
    runPromise: Effect.runPromiseWith(context),
    unauthorized: () => unauthorized,
    quietUntil: () => earliest,
  }
}

/**
 * Limit for the JSON values in a response. The libraries validate a response synchronously, at up to 4 microseconds per
 * value. Ordinary pages have at most half as many values.
 */
const maxValues = 8_000

/** Yields an error and its causes, the outermost first. */
function* causes(error: unknown): Generator<unknown> {
  // The limit ends circular chains.
  for (let at = error, depth = 0; at !== undefined && depth < 10; depth++) {
    yield at
    if (at instanceof AggregateError) for (const part of at.errors) yield* causes(part)
    at = at instanceof Error ? at.cause : undefined
  }
}

const messageOf = (error: unknown) => boundedWords(error instanceof Error ? error.message : String(error))

const failureOf = (error: unknown, chain: ReadonlyArray<unknown>): PlatformFailure => {
  const known = chain.find(isFailure)
  if (known !== undefined) return known
  for (const cause of chain) {
    const failure = ofTokens(cause) ?? ofOAuth(cause) ?? ofXrpc(cause)
    if (failure !== undefined) return failure
  }
  const unresolved = chain.find(
    (cause) =>
      cause instanceof DidError ||
      cause instanceof HandleResolverError ||
      cause instanceof OAuthResolverError ||
      // The identity resolver does not export its error class.
      (cause instanceof Error && cause.name === "IdentityResolverError"),
  )
  if (unresolved !== undefined) return new InputRefused({ message: messageOf(unresolved), path: "/account" })
  // The library could not parse the response, for example a proxy's error page.
  return new PlatformUnreachable({ message: messageOf(error) })
}

const ofTokens = (error: unknown): PlatformFailure | undefined =>
  error instanceof TokenRefreshError || error instanceof TokenRevokedError || error instanceof TokenInvalidError
    ? new CredentialRefused({ message: messageOf(error) })
    : undefined

/** OAuth errors that mean an invalid grant or a denial by the person (RFC 6749 section 5.2). */
const grantErrors = new Set(["invalid_grant", "access_denied", "invalid_token", "login_required", "consent_required"])

const ofOAuth = (error: unknown): PlatformFailure | undefined => {
  if (error instanceof OAuthCallbackError) {
    const named = error.params.get("error")
    if (named === null) return undefined
    const message = boundedWords(error.params.get("error_description") ?? named)
    return grantErrors.has(named) ? new CredentialRefused({ message }) : new PlatformRefused({ message })
  }
  if (!(error instanceof OAuthResponseError)) return undefined
  const message = boundedWords(error.errorDescription ?? error.message)
  if (error.status >= 500) return new PlatformUnreachable({ message })
  if (grantErrors.has(error.error ?? "")) return new CredentialRefused({ message })
  return new PlatformRefused({ message })
}

/** Errors that mean an invalid credential (https://atproto.com/specs/xrpc "Error Responses", and the lexicons). */
const credentialErrors = new Set([
  "AuthenticationRequired",
  "AuthFactorTokenRequired",
  "ExpiredToken",
  "InvalidToken",
  "AccountTakedown",
  "AccountSuspended",
  "AccountDeactivated",
])
/** Errors of the lexicons that mean that a record or an account does not exist. */
const missingErrors = new Set([
  "RecordNotFound",
  "RepoNotFound",
  "NotFound",
  "InvalidConvo",
  "RecipientNotFound",
  "ReplyTargetNotFound",
])

const ofXrpc = (error: unknown): PlatformFailure | undefined => {
  if (!(error instanceof XRPCError)) return undefined
  const message = messageOf(error)
  // This check comes first, because the error has the same name as an invalid token.
  if (isBadTokenMethod(error)) return new Unsupported({ message })
  if (credentialErrors.has(error.error)) return new CredentialRefused({ message })
  if (missingErrors.has(error.error) || /^could not (find|locate)/i.test(message)) {
    return new PlatformRefused({ message, missing: true })
  }
  // The library uses the statuses 1 and 2 for a missing response and for one that its lexicon rejects.
  if (error.status < 400 || error.status >= 500) return new PlatformUnreachable({ message })
  // The session was just refreshed, so a service behind the account's server rejects the call for another reason.
  if (error.status === 401) return new PlatformUnreachable({ message })
  return new PlatformRefused({ message })
}

/** Returns whether an error means an app password or token that may not access direct messages. */
const isBadTokenMethod = (error: XRPCError) =>
  /bad token (method|scope)/i.test(error.message) ||
  error.error === "ScopeMissingError" ||
  error.error === "InsufficientScope"
