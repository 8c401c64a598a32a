/**
 * Who we are to an authorization server (https://atproto.com/specs/oauth "Clients"): its `client_id` is the address of
 * this document, which the API serves. A service without a public address, as on a developer's own machine, is a client
 * of the kind that the specification has for that: it has no key, and the server fetches nothing from it.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import type { OAuthClientMetadataInput } from "@atproto/oauth-client-node"

const scope = "atproto transition:generic transition:chat.bsky"

export const metadata = (book: AddressBook, jwk: object) => ({
  client_id: `${book.baseUrl}/api/connectors/bluesky/client-metadata.json`,
  client_name: "Agent Identity Service",
  client_uri: book.baseUrl,
  redirect_uris: [`${book.baseUrl}/connectors/callback`],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  scope,
  application_type: "web",
  dpop_bound_access_tokens: true,
  token_endpoint_auth_method: "private_key_jwt",
  token_endpoint_auth_signing_alg: "ES256",
  jwks: { keys: [jwk] },
})

/** Whether authorization servers can fetch the document. */
export const isPublic = (book: AddressBook) => book.baseUrl.startsWith("https://")

/** Where a browser comes back to. Without a public address it is the loopback interface by number (RFC 8252 section 7.3). */
export const redirectUri = (book: AddressBook, wanted: string): string => {
  if (isPublic(book)) return wanted
  const url = new URL(wanted)
  if (url.hostname === "localhost") url.hostname = "127.0.0.1"
  return url.href
}

/** A client without a public address says in its `client_id` what the document would say. */
export const loopback = (book: AddressBook): OAuthClientMetadataInput => {
  const back = redirectUri(book, `${book.baseUrl}/connectors/callback`)
  return {
    client_id: `http://localhost?${new URLSearchParams({ redirect_uri: back, scope })}`,
    client_name: "Agent Identity Service",
    redirect_uris: [back as `http://127.0.0.1${string}`],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    scope,
    application_type: "native",
    dpop_bound_access_tokens: true,
    token_endpoint_auth_method: "none",
  }
}
