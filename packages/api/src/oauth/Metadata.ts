/**
 * Discovery of the authorization server: protected resource metadata (RFC 9728), authorization server metadata (RFC 8414),
 * the OpenID configuration for verifiers of identity tokens, and the challenge of a 401. Server metadata and OpenID
 * configuration are one document at two addresses, so that they cannot contradict each other. Both list only the minimum of useful scopes, because clients request every scope that is listed.
 */
import { Addresses, type AddressBook } from "@svc/domain/Addresses"
import { idTokenAlgorithms, openIdScopes } from "@svc/domain/proof/SignIn"
import { metadataOf, resourceOf } from "@svc/domain/oauth/Resource"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { product } from "../pages/Page.ts"
import { scopeNames } from "@svc/domain/ScopeTable"
import { baseline } from "./OfferedScopes.ts"

const ofResource = (book: AddressBook) => ({
  resource: resourceOf(book),
  authorization_servers: [book.baseUrl],
  scopes_supported: baseline,
  bearer_methods_supported: ["header"],
  resource_name: product,
  resource_documentation: `${book.baseUrl}/api/docs`,
})

const ofServer = ({ baseUrl }: AddressBook) => ({
  issuer: baseUrl,
  authorization_endpoint: `${baseUrl}/auth/authorize`,
  token_endpoint: `${baseUrl}/api/oauth/token`,
  registration_endpoint: `${baseUrl}/api/oauth/register`,
  revocation_endpoint: `${baseUrl}/api/oauth/revoke`,
  userinfo_endpoint: `${baseUrl}/api/oauth/userinfo`,
  response_types_supported: ["code"],
  response_modes_supported: ["query"],
  grant_types_supported: ["authorization_code", "refresh_token"],
  token_endpoint_auth_methods_supported: ["none"],
  revocation_endpoint_auth_methods_supported: ["none"],
  code_challenge_methods_supported: ["S256"],
  scopes_supported: [...openIdScopes, ...scopeNames, "offline_access"],
  client_id_metadata_document_supported: true,
  authorization_response_iss_parameter_supported: true,
  service_documentation: `${baseUrl}/api/docs`,
  jwks_uri: `${baseUrl}/.well-known/jwks.json`,
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: idTokenAlgorithms,
  request_parameter_supported: false,
  request_uri_parameter_supported: false,
  claims_parameter_supported: false,
  claims_supported: [
    "iss",
    "sub",
    "aud",
    "iat",
    "nbf",
    "exp",
    "jti",
    "nonce",
    "auth_time",
    "at_hash",
    "name",
    "preferred_username",
    "profile",
    "handle",
    "email",
    "email_verified",
    "org",
    "act",
  ],
})

/** Builds `WWW-Authenticate` of a 401 (RFC 9728 section 5.1); `error` is only set if a token was sent. */
export const challenge = (book: AddressBook, sent: boolean): string =>
  `Bearer ${sent ? 'error="invalid_token", ' : ""}resource_metadata="${metadataOf(book)}", scope="${baseline.join(" ")}"`

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    // Pages of other sites read these documents, also from a cache that a program filled.
    const headers = { "cache-control": "public, max-age=3600", "access-control-allow-origin": "*" }
    const json = (body: unknown) => Effect.succeed(HttpServerResponse.jsonUnsafe(body, { headers }))
    yield* router.add("GET", "/.well-known/oauth-protected-resource", json(ofResource(book)))
    yield* router.add("GET", "/.well-known/oauth-protected-resource/api/mcp", json(ofResource(book)))
    yield* router.add("GET", "/.well-known/oauth-authorization-server", json(ofServer(book)))
    yield* router.add("GET", "/.well-known/openid-configuration", json(ofServer(book)))
  }),
)
