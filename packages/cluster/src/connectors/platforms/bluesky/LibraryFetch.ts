/**
 * The libraries' way out and what comes back of it: each of their calls leaves through the {@link PlatformHttp} of the call at
 * hand, and whatever they throw becomes one of the failures that the rest of the product knows.
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
import { boundedWords } from "../ResponseBounds.ts"
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
  /** Runs a library's call. */
  readonly call: <A>(run: () => Promise<A>) => Effect.Effect<A, PlatformFailure>
  /** Why the call fails, whatever the library makes of it afterwards: it hides a refresh that failed behind what it was for. */
  readonly fail: (reason: unknown) => void
  /** Runs what the interface gives where a library waits for a promise. */
  readonly promised: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  /** An answer said 401. */
  readonly unauthorized: () => boolean
  /** Until when an answer asked to be left alone, be it that the last call of a window was spent. */
  readonly restUntil: () => Date | undefined
}

/** A wire for one call of the Connector. */
export const make = (reach: PlatformHttp): Effect.Effect<LibraryFetch> =>
  Effect.map(Effect.context(), (context) => over(reach, context))

const over = (reach: PlatformHttp, context: Context.Context<never>): LibraryFetch => {
  let failed: { readonly reason: unknown } | undefined
  let unauthorized = false
  let limited: { readonly until: Date | null } | undefined
  let rest: Date | undefined
  return {
    fetch: async (input, init) => {
      const answer = await reach.fetch(input, init)
      if (valuesOf(new Uint8Array(await answer.clone().arrayBuffer())) > valuesAtMost) {
        throw new PlatformUnreachable({ message: `${new URL(answer.url).host} gave an answer with too much in it.` })
      }
      const quiet = reach.quietUntil()
      if (answer.status === 401) unauthorized = true
      if (quiet !== undefined) rest = quiet
      if (answer.status === 429 || (answer.status === 503 && quiet !== undefined)) limited = { until: quiet ?? null }
      return answer
    },
    call: (run) => {
      limited = undefined
      return Effect.catch(Effect.tryPromise({ try: run, catch: (thrown) => thrown }), (thrown) => {
        const reason = failed === undefined ? thrown : failed.reason
        const chain = [...causes(reason)]
        // Our own store is unavailable, which is not the platform's fault.
        const problem = chain.find(isProblem)
        if (problem !== undefined) return Effect.die(problem)
        const failure = failureOf(reason, chain)
        const isAnswers = failed === undefined && limited !== undefined && failure._tag !== "Halted"
        return Effect.fail(isAnswers ? new PlatformRateLimited({ message: failure.message, ...limited! }) : failure)
      })
    },
    fail: (reason) => {
      failed = { reason }
    },
    promised: Effect.runPromiseWith(context),
    unauthorized: () => unauthorized,
    restUntil: () => rest,
  }
}

/**
 * How many values a library may be given to read: each costs it up to 4 microseconds, and it reads an answer at one go.
 * What servers give for the pages that are asked for has half as many.
 */
const valuesAtMost = 8_000

const [quote, backslash, comma, bracket, brace] = [...'"\\,[{'].map((sign) => sign.charCodeAt(0))

/** How many values a JSON text has, about: what opens and what separates, outside of strings. */
const valuesOf = (json: Uint8Array): number => {
  let values = 0
  let quoted = false
  for (let at = 0; at < json.length; at++) {
    const sign = json[at]
    if (quoted) {
      if (sign === backslash) at++
      else if (sign === quote) quoted = false
    } else if (sign === quote) quoted = true
    else if (sign === comma || sign === bracket || sign === brace) values++
  }
  return values
}

/** What was thrown and what it was thrown for, from the outside in. */
function* causes(error: unknown): Generator<unknown> {
  // A chain is a few links long; one that leads to itself ends here.
  for (let at = error, depth = 0; at !== undefined && depth < 10; depth++) {
    yield at
    if (at instanceof AggregateError) for (const part of at.errors) yield* causes(part)
    at = at instanceof Error ? at.cause : undefined
  }
}

const words = (error: unknown) => boundedWords(error instanceof Error ? error.message : String(error))

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
      // The resolver of identities does not export its error.
      (cause instanceof Error && cause.name === "IdentityResolverError"),
  )
  if (unresolved !== undefined) return new InputRefused({ message: words(unresolved), path: "/account" })
  // An answer that a library cannot read is none of the platform's.
  return new PlatformUnreachable({ message: words(error) })
}

const ofTokens = (error: unknown): PlatformFailure | undefined =>
  error instanceof TokenRefreshError || error instanceof TokenRevokedError || error instanceof TokenInvalidError
    ? new CredentialRefused({ message: words(error) })
    : undefined

/** RFC 6749 section 5.2: what says that the grant, or the person, is the reason. */
const ofGrants = new Set(["invalid_grant", "access_denied", "invalid_token", "login_required", "consent_required"])

const ofOAuth = (error: unknown): PlatformFailure | undefined => {
  if (error instanceof OAuthCallbackError) {
    const named = error.params.get("error")
    if (named === null) return undefined
    const message = boundedWords(error.params.get("error_description") ?? named)
    return ofGrants.has(named) ? new CredentialRefused({ message }) : new PlatformRefused({ message })
  }
  if (!(error instanceof OAuthResponseError)) return undefined
  const message = boundedWords(error.errorDescription ?? error.message)
  if (error.status >= 500) return new PlatformUnreachable({ message })
  if (ofGrants.has(error.error ?? "")) return new CredentialRefused({ message })
  return new PlatformRefused({ message })
}

/** https://atproto.com/specs/xrpc "Error Responses", and the names of the lexicons that are called here. */
const ofCredentials = new Set([
  "AuthenticationRequired",
  "AuthFactorTokenRequired",
  "ExpiredToken",
  "InvalidToken",
  "AccountTakedown",
  "AccountSuspended",
  "AccountDeactivated",
])
const ofMissing = new Set([
  "RecordNotFound",
  "RepoNotFound",
  "NotFound",
  "InvalidConvo",
  "RecipientNotFound",
  "ReplyTargetNotFound",
])

const ofXrpc = (error: unknown): PlatformFailure | undefined => {
  if (!(error instanceof XRPCError)) return undefined
  const message = words(error)
  // Its name is that of a token which is no good at all.
  if (isBadTokenMethod(error)) return new Unsupported({ message })
  if (ofCredentials.has(error.error)) return new CredentialRefused({ message })
  if (ofMissing.has(error.error) || /^could not (find|locate)/i.test(message)) {
    return new PlatformRefused({ message, missing: true })
  }
  // 1 and 2 are the library's own: no answer, and one that is not as its lexicon says.
  if (error.status < 400 || error.status >= 500) return new PlatformUnreachable({ message })
  // The session was refreshed, and a service behind the server still refuses: the credential is not the reason.
  if (error.status === 401) return new PlatformUnreachable({ message })
  return new PlatformRefused({ message })
}

/** An app password without direct messages, or a token without the scope for them. */
const isBadTokenMethod = (error: XRPCError) =>
  /bad token (method|scope)/i.test(error.message) ||
  error.error === "ScopeMissingError" ||
  error.error === "InsufficientScope"
