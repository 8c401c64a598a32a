/**
 * OAuth client metadata (https://atproto.com/specs/oauth "Clients"). The `client_id` is the address of this document,
 * which the API serves. A service without a public address, such as on a developer's machine, uses the specification's
 * loopback client, which has no key and no document.
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

/** Returns whether authorization servers can fetch the document. */
export const isPublic = (book: AddressBook) => book.baseUrl.startsWith("https://")

/** Returns the redirect URI, with the loopback IP address if there is no public address (RFC 8252 section 7.3). */
export const redirectUri = (book: AddressBook, wanted: string): string => {
  if (isPublic(book)) return wanted
  const url = new URL(wanted)
  if (url.hostname === "localhost") url.hostname = "127.0.0.1"
  return url.href
}

/** Returns the metadata of a loopback client, whose `client_id` contains its parameters. */
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
