/**
 * The session of a browser on our plain pages, which no script is needed for. Other sites cannot post with it
 * (`SameSite=Lax`, and {@link fromOurPages}).
 */
import { Addresses } from "@svc/domain/Addresses"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { tokenOf } from "../account/ConsoleSession.ts"

/** The signed-in account holder; undefined for anyone else. */
export const signedIn = Effect.gen(function* () {
  const credentials = yield* CredentialLookup
  const request = yield* HttpServerRequest.HttpServerRequest
  const token = tokenOf(yield* Addresses, request)
  if (token === undefined) return undefined
  const caller = yield* Effect.option(credentials.resolve(Redacted.make(token)))
  return caller._tag === "Some" && caller.value.kind === "session" ? caller.value : undefined
})

/**
 * Whether a form was sent from a page of ours: as `Origin` or `Sec-Fetch-Site` says, one of which every browser sends.
 * Another site could otherwise sign someone in to an account of its own. Development also takes what says neither, and
 * whatever name the service was reached by.
 */
export const fromOurPages = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { baseUrl, environment } = yield* Addresses
  const origin = headers["origin"]
  const site = headers["sec-fetch-site"]
  if (origin !== undefined && origin === new URL(baseUrl).origin) return true
  // A browser says `same-origin` of the name it knows us by, and no script can set the field.
  if (site !== undefined) return site === "same-origin"
  return environment === "development" && (origin === undefined || origin === `http://${headers["host"]}`)
})

/**
 * The same where a form gives something away that cannot be taken back: the browser must say in `Origin` that a page of
 * ours sent it. One that says nothing does not pass.
 */
export const certainlyFromOurPages = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { baseUrl, environment } = yield* Addresses
  const origin = headers["origin"]
  if (origin === undefined) return false
  const site = headers["sec-fetch-site"]
  if (site !== undefined && site !== "same-origin") return false
  return origin === new URL(baseUrl).origin || (environment === "development" && origin === `http://${headers["host"]}`)
})
