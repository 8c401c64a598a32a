/**
 * The metadata of OAuth clients, from a registration (RFC 7591) or from a document at the URL that is the client's id
 * (Client ID Metadata Documents, draft-ietf-oauth-client-id-metadata-document). The metadata is unverified; only the
 * name and the redirects are stored. No I/O.
 */
import { Result } from "effect"
import type { AddressBook } from "../Addresses.ts"
import { type IdTokenAlgorithm, idTokenAlgorithms } from "../proof/SignIn.ts"
import { isAcceptable, isOwnHost, mostRedirects, withoutPort } from "./Redirect.ts"

export interface ClientDetails {
  readonly name: string
  readonly redirects: ReadonlyArray<string>
  /** The algorithm of its ID tokens; null for a client that did not say that it uses OpenID Connect. */
  readonly idTokenAlgorithm: IdTokenAlgorithm | null
}

/** Why a client was rejected, with the error codes of RFC 7591 section 3.2.2. */
interface ClientRefused {
  readonly error: "invalid_redirect_uri" | "invalid_client_metadata"
  readonly description: string
}

/** Maximum length of a displayed name. */
const longestName = 60
/** Maximum length of all redirects of a registration, like that of a document: anybody may register. */
const longestRedirects = 5_000
/** Maximum length of a client's id. */
const longestClientId = 500

const refused = (error: ClientRefused["error"], description: string) => Result.fail({ error, description })

/**
 * Returns the name in one line, without control characters and characters that reverse or hide text. A name that is too
 * long ends with an ellipsis.
 */
const shownName = (text: unknown): string | undefined => {
  if (typeof text !== "string") return undefined
  const line = text
    .slice(0, 1000)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, "")
    .replace(/\s+/gu, " ")
    .trim()
  const letters = Array.from(line)
  if (letters.length === 0) return undefined
  return letters.length > longestName ? `${letters.slice(0, longestName - 1).join("")}…` : line
}

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const texts = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) && value.every((one): one is string => typeof one === "string") ? value : undefined

/** Returns whether the member includes the wanted value. An absent member means the code flow. */
const has = (value: unknown, wanted: string) => value === undefined || texts(value)?.includes(wanted) === true

const flowOf = (said: Members) => has(said["grant_types"], "authorization_code") && has(said["response_types"], "code")

/** Returns the algorithm of ID tokens (OpenID Connect Registration section 2); undefined if it is not supported. */
const algorithmOf = (said: Members): ClientDetails["idTokenAlgorithm"] | undefined => {
  const named = said["id_token_signed_response_alg"]
  if (named !== undefined) return idTokenAlgorithms.find((one) => one === named)
  const { scope } = said
  return typeof scope === "string" && scope.split(" ").includes("openid") ? idTokenAlgorithms[0] : null
}

const unsupportedAlgorithm = () =>
  refused("invalid_client_metadata", `id_token_signed_response_alg must be ${idTokenAlgorithms.join(" or ")}.`)

/** Parses a registration. All redirects must be acceptable. */
export const readRegistration = (book: AddressBook, said: unknown): Result.Result<ClientDetails, ClientRefused> => {
  if (!isMembers(said)) return refused("invalid_client_metadata", "The body must be a JSON object of client metadata.")
  const redirects = texts(said["redirect_uris"])
  if (redirects === undefined || redirects.length === 0 || redirects.length > mostRedirects) {
    return refused("invalid_redirect_uri", `redirect_uris must be a list of 1 to ${mostRedirects} URIs.`)
  }
  if (redirects.join("").length > longestRedirects) {
    return refused("invalid_redirect_uri", `redirect_uris must have at most ${longestRedirects} characters in all.`)
  }
  if (!redirects.every((one) => isAcceptable(book, one))) {
    return refused(
      "invalid_redirect_uri",
      "A redirect must be https, http on localhost, 127.0.0.1 or [::1], or a private-use scheme with a dot (RFC 8252 section 7), without fragment and user, and must not point to this service.",
    )
  }
  if (!flowOf(said)) {
    return refused(
      "invalid_client_metadata",
      "grant_types must include authorization_code, and response_types must include code.",
    )
  }
  const idTokenAlgorithm = algorithmOf(said)
  if (idTokenAlgorithm === undefined) return unsupportedAlgorithm()
  const name = shownName(said["client_name"]) ?? "unnamed"
  return Result.succeed({ name, redirects: [...new Set(redirects)], idTokenAlgorithm })
}

/** Returns a key that is equal for equal registrations, regardless of loopback ports and of the order of redirects. */
export const normalised = ({ name, redirects, idTokenAlgorithm }: ClientDetails): string =>
  JSON.stringify([
    name,
    [...new Set(redirects.map(withoutPort))].sort(),
    ...(idTokenAlgorithm === null ? [] : [idTokenAlgorithm]),
  ])

/** Returns whether the id is the URL of a document that the service would fetch. */
export const isDocument = (book: AddressBook, id: string): boolean => {
  if (id.length > longestClientId) return false
  const url = URL.parse(id)
  return (
    url !== null &&
    // The URL must be in the form in which it is requested: no fragment, no dot segments, no alternative spelling.
    url.href === id &&
    (url.protocol === "https:" || (book.environment === "development" && url.protocol === "http:")) &&
    url.pathname !== "/" &&
    url.username === "" &&
    url.password === "" &&
    url.hash === "" &&
    !id.includes("#") &&
    (book.environment === "development" || !isOwnHost(book, url.hostname))
  )
}

/** Parses the document at a client's id. Redirects that are not acceptable are dropped; at least one must remain. */
export const readDocument = (
  book: AddressBook,
  id: string,
  said: unknown,
): Result.Result<ClientDetails, ClientRefused> => {
  if (!isMembers(said) || said["client_id"] !== id) {
    return refused("invalid_client_metadata", "The document's client_id differs from its address.")
  }
  if ("client_secret" in said || "client_secret_expires_at" in said) {
    return refused("invalid_client_metadata", "The document contains a client secret, which would be public.")
  }
  const methods = texts(said["token_endpoint_auth_methods_supported"]) ?? [said["token_endpoint_auth_method"] ?? "none"]
  if (!methods.includes("none")) {
    return refused("invalid_client_metadata", "The client must support token_endpoint_auth_method none.")
  }
  const redirects = texts(said["redirect_uris"])
  if (redirects === undefined || redirects.length > mostRedirects) {
    return refused("invalid_redirect_uri", `redirect_uris must be a list of 1 to ${mostRedirects} URIs.`)
  }
  const acceptable = redirects.filter((one) => isAcceptable(book, one))
  if (acceptable.length === 0) return refused("invalid_redirect_uri", "The document has no acceptable redirect.")
  if (!flowOf(said)) return refused("invalid_client_metadata", "The client does not use the authorization code flow.")
  const idTokenAlgorithm = algorithmOf(said)
  if (idTokenAlgorithm === undefined) return unsupportedAlgorithm()
  const name = shownName(said["client_name"]) ?? new URL(id).hostname
  return Result.succeed({ name, redirects: acceptable, idTokenAlgorithm })
}
