/**
 * Validates the authorization request of a client (RFC 6749 section 4.1.1, RFC 7636, RFC 8707, RFC 9207) against its
 * registration, without I/O. If the redirect address is unknown, the error is shown to the user and never sent to the
 * client.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { answering, isAcceptable, matches } from "@svc/domain/oauth/Redirect"
import { isOurs, resourceOf } from "@svc/domain/oauth/Resource"
import { openIdScopes } from "@svc/domain/proof/SignIn"
import { isStorable } from "@svc/domain/Text"
import type { RequestedGrant } from "@svc/cluster/oauth/Grants"
import type { OAuthClient } from "@svc/cluster/oauth/OAuthClients"
import type { SignInRequest } from "@svc/cluster/proof/SignIns"
import { baseline, grantable } from "./OfferedScopes.ts"

/** The maximum length of a query, ten times the longest seen in practice. */
export const longestQuery = 8192

const longestNonce = 500

interface Response {
  /** Builds the redirect address of a response, including `state` and `iss`. */
  readonly back: (answer: Readonly<Record<string, string>>) => string
}

export interface Wanted extends RequestedGrant, Response {
  /** The requested scopes that exist. */
  readonly scopes: ReadonlyArray<string>
}

/** A request of a relying party, which an agent answers. */
interface WantedSignIn extends Pick<SignInRequest, "redirect" | "challenge" | "scopes" | "nonce">, Response {}

/** The error is sent to this address, which is the redirect address with its parameters. */
export interface Refused {
  readonly _tag: "Refused"
  readonly to: string
  readonly redirect: string
  readonly description: string
}

type Judged<W> =
  | { readonly _tag: "Wanted"; readonly wanted: W }
  | Refused
  /** The error is only shown to the user. */
  | { readonly _tag: "Unusable" }

/** Returns the client's id if the query names one. */
export const clientIdOf = (query: URLSearchParams): string | undefined => {
  const named = query.getAll("client_id")
  const [id] = named
  return named.length === 1 && id !== undefined && id !== "" && isStorable(id) ? id : undefined
}

const scopesOf = (query: URLSearchParams) => (query.get("scope") ?? "").split(" ")

/**
 * Returns whether a relying party of OpenID Connect sent the request, so that an agent answers it and no account holder
 * consents: it names `openid`, but no resource and no scope of the API. An MCP client names at least one of these.
 */
export const isSignIn = (query: URLSearchParams): boolean => {
  const scopes = scopesOf(query)
  return scopes.includes("openid") && !query.has("resource") && !scopes.some((one) => grantable.has(one))
}

/** Returns the query of an authorization request that a client sent to this service; undefined for another address. */
export const queryOf = ({ baseUrl }: AddressBook, text: string): URLSearchParams | undefined => {
  const url = URL.parse(text)
  const endpoint = new URL(`${baseUrl}/auth/authorize`)
  const isOurs =
    url !== null &&
    url.origin === endpoint.origin &&
    url.pathname === endpoint.pathname &&
    url.username + url.password === "" &&
    url.search.length <= longestQuery
  return isOurs ? url.searchParams : undefined
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
  "nonce",
]

/** Checks what every request needs. `then` judges the rest of it. */
const judged = <W>(
  book: AddressBook,
  client: OAuthClient,
  query: URLSearchParams,
  then: (
    sound: Response & { readonly redirect: string; readonly challenge: string },
    refused: (error: string, description: string) => Judged<W>,
  ) => Judged<W>,
): Judged<W> => {
  const redirect = query.get("redirect_uri")
  if (redirect === null || query.getAll("redirect_uri").length > 1) return { _tag: "Unusable" }
  if (!isAcceptable(book, redirect) || !matches(redirect, client.redirects)) return { _tag: "Unusable" }
  const state = query.get("state")
  const back = (answer: Readonly<Record<string, string>>) =>
    answering(redirect, { ...answer, ...(state === null ? {} : { state }), iss: book.baseUrl })
  const refused = (error: string, description: string): Judged<W> => ({
    _tag: "Refused",
    to: back({ error, error_description: description }),
    redirect,
    description,
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
  return then({ redirect, challenge, back }, refused)
}

export const judge = (book: AddressBook, client: OAuthClient, query: URLSearchParams): Judged<Wanted> =>
  judged(book, client, query, (sound, refused) => {
    if (!query.getAll("resource").every((one) => isOurs(book, one))) {
      return refused("invalid_target", "The resource does not belong to this service.")
    }
    if (query.get("prompt")?.split(" ").includes("none") === true) {
      return refused("consent_required", "The account holder must confirm every request.")
    }
    const requested = scopesOf(query).filter((one) => grantable.has(one))
    const scopes = requested.length === 0 ? baseline : [...new Set(requested)]
    return { _tag: "Wanted", wanted: { client, resource: resourceOf(book), scopes, ...sound } }
  })

/** Judges the request of a relying party. */
export const judgeSignIn = (book: AddressBook, client: OAuthClient, query: URLSearchParams): Judged<WantedSignIn> =>
  judged(book, client, query, (sound, refused) => {
    if (!isSignIn(query)) {
      return refused("invalid_scope", "A site that signs an agent in asks for the scope openid, and for no resource.")
    }
    const nonce = query.get("nonce")
    if (nonce !== null && (nonce.length > longestNonce || !isStorable(nonce))) {
      return refused("invalid_request", `nonce must have at most ${longestNonce} characters.`)
    }
    const scopes = openIdScopes.filter((one) => scopesOf(query).includes(one))
    return { _tag: "Wanted", wanted: { scopes, nonce, ...sound } }
  })
