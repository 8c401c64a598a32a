/**
 * Validates the authorization request of a client (RFC 6749 section 4.1.1, RFC 7636, RFC 8707, RFC 9207) against its
 * registration, without I/O. If the redirect address is unknown, the error is shown to the user and never sent to the
 * client.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { answering, isAcceptable, matches } from "@svc/domain/oauth/Redirect"
import { isOurs, resourceOf } from "@svc/domain/oauth/Resource"
import { isStorable } from "@svc/domain/Text"
import type { RequestedGrant } from "@svc/cluster/oauth/Grants"
import type { OAuthClient } from "@svc/cluster/oauth/OAuthClients"
import { baseline, grantable } from "./OfferedScopes.ts"

/** The maximum length of a query, ten times the longest seen in practice. */
export const longestQuery = 8192

export interface Wanted extends RequestedGrant {
  /** The requested scopes that exist. */
  readonly scopes: ReadonlyArray<string>
  /** Builds the redirect address of a response, including `state` and `iss`. */
  readonly back: (answer: Readonly<Record<string, string>>) => string
}

/** The error is sent to this address, which is the redirect address with its parameters. */
export interface Refused {
  readonly _tag: "Refused"
  readonly to: string
  readonly redirect: string
}

type Judged =
  | { readonly _tag: "Wanted"; readonly wanted: Wanted }
  | Refused
  /** The error is only shown to the user. */
  | { readonly _tag: "Unusable" }

/** Returns the client's id if the query names one. */
export const clientIdOf = (query: URLSearchParams): string | undefined => {
  const named = query.getAll("client_id")
  const [id] = named
  return named.length === 1 && id !== undefined && id !== "" && isStorable(id) ? id : undefined
}

const single = [
  "response_type",
  "response_mode",
  "redirect_uri",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "prompt",
]

export const judge = (book: AddressBook, client: OAuthClient, query: URLSearchParams): Judged => {
  const redirect = query.get("redirect_uri")
  if (redirect === null || query.getAll("redirect_uri").length > 1) return { _tag: "Unusable" }
  if (!isAcceptable(book, redirect) || !matches(redirect, client.redirects)) return { _tag: "Unusable" }
  const state = query.get("state")
  const back = (answer: Readonly<Record<string, string>>) =>
    answering(redirect, { ...answer, ...(state === null ? {} : { state }), iss: book.baseUrl })
  const refused = (error: string, error_description: string): Judged => ({
    _tag: "Refused",
    to: back({ error, error_description }),
    redirect,
  })

  if (single.some((name) => query.getAll(name).length > 1)) {
    return refused("invalid_request", "A parameter occurs more than once.")
  }
  if (query.has("request"))
    return refused("request_not_supported", "Request objects are not supported. Send the parameters in the query.")
  if (query.has("request_uri"))
    return refused("request_uri_not_supported", "Request objects are not supported. Send the parameters in the query.")
  if (query.get("response_type") !== "code") return refused("unsupported_response_type", "response_type must be code.")
  if ((query.get("response_mode") ?? "query") !== "query")
    return refused("invalid_request", "response_mode must be query.")
  const challenge = query.get("code_challenge") ?? ""
  if (query.get("code_challenge_method") !== "S256" || !/^[A-Za-z0-9_-]{43}$/.test(challenge)) {
    return refused("invalid_request", "PKCE with S256 is required: send code_challenge and code_challenge_method.")
  }
  if (!query.getAll("resource").every((one) => isOurs(book, one))) {
    return refused("invalid_target", "The resource does not belong to this service.")
  }
  if (query.get("prompt")?.split(" ").includes("none") === true) {
    return refused("consent_required", "The account holder must confirm every request.")
  }
  const requested = (query.get("scope") ?? "").split(" ").filter((one) => grantable.has(one))
  const scopes = requested.length === 0 ? baseline : [...new Set(requested)]
  return { _tag: "Wanted", wanted: { client, redirect, challenge, resource: resourceOf(book), scopes, back } }
}
