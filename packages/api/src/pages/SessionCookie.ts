/**
 * The session cookie on pages without script. Other sites cannot post with it (`SameSite=Lax`, and {@link fromOurPages}).
 */
import { Addresses } from "@svc/domain/Addresses"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { tokenOf } from "../account/ConsoleSession.ts"

/** Returns the signed-in account holder, or undefined. Fails with `unavailable` if the session cannot be looked up. */
export const signedIn = Effect.gen(function* () {
  const credentials = yield* CredentialLookup
  const request = yield* HttpServerRequest.HttpServerRequest
  const token = tokenOf(yield* Addresses, request)
  if (token === undefined) return undefined
  const caller = yield* Effect.catch(credentials.resolve(Redacted.make(token)), (problem) =>
    problem._tag === "unavailable" ? Effect.fail(problem) : Effect.undefined,
  )
  return caller?.kind === "session" ? caller : undefined
})

/**
 * Returns whether a form was submitted from a page of this service, by `Origin` or `Sec-Fetch-Site`, one of which every
 * browser sends. Another site could otherwise sign the user in to a foreign account. Development also accepts requests
 * without both headers, and any host name.
 */
export const fromOurPages = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { baseUrl, environment } = yield* Addresses
  const origin = headers["origin"]
  const site = headers["sec-fetch-site"]
  if (origin !== undefined && origin === new URL(baseUrl).origin) return true
  // Browsers compare with the host name in use, and scripts cannot set the header.
  if (site !== undefined) return site === "same-origin"
  return environment === "development" && (origin === undefined || origin === `http://${headers["host"]}`)
})

/** The strict variant for forms with irreversible effects: `Origin` is required and must be this service. */
export const certainlyFromOurPages = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { baseUrl, environment } = yield* Addresses
  const origin = headers["origin"]
  if (origin === undefined) return false
  const site = headers["sec-fetch-site"]
  if (site !== undefined && site !== "same-origin") return false
  return origin === new URL(baseUrl).origin || (environment === "development" && origin === `http://${headers["host"]}`)
})
