/** Descriptions of members about keys and tokens (see {@link module:Descriptions}). */
export const ofProof: Readonly<Record<string, string>> = {
  did: "The DID of the Identity (did:web).",
  did_url: "The address of the DID document.",
  jwks_url: "The address of the key set (RFC 7517).",
  "SigningKeys.keys": "The published keys, oldest first.",
  jwk: "The public key as a JWK (RFC 7517): Ed25519 or P-256.",
  kty: "The key type: `OKP` or `EC`.",
  crv: "The curve: `Ed25519` or `P-256`.",
  x: "The public key, or its x coordinate, in base64url.",
  y: "The y coordinate of a P-256 key in base64url.",
  kid: "The thumbprint of the key (RFC 7638).",
  alg: "The algorithm: `EdDSA` or `ES256`.",
  use: "Always `sig`.",
  audiences:
    "The audiences for which the Identity may get tokens: a list, or `any`. Admin Keys with `proof:admin` may use every one.",
  sites:
    "The sites at which the Identity may sign in without approval: a list of hosts, or `any`. Admin Keys with `proof:admin` may sign in at every one.",
  authorization_url: "The address to which the site redirected, `{base}/auth/authorize?client_id=…`, unchanged.",
  site: "The host of the redirect URI, or the scheme of an app.",
  redirect_uri: "The address of the site that gets the code.",
  redirect_url:
    "The address of the site with the code, to open within a minute; null while the sign-in awaits approval.",
  "AgentSignIn.status":
    "`started`: the site has not exchanged the code yet. `approved`: post the same request again, or a new one of the site.",
  "AgentSignIn.expires_at":
    "When the request for approval, the approval, the code or the access token expires, depending on `status`.",
  "AgentSignIn.client_name": "The name that the site gave itself, which nobody checked.",
  sign_ins: "The sign-ins, newest first.",
  sign_in_id: "The id of the sign-in.",
  signed_in_at: "When the site exchanged the code.",
  ended_at: "When the sign-in was ended.",
  audience: "The service, as it expects itself in `aud`.",
  expires_in: "The lifetime in seconds; default: 300.",
  nonce: "A value that the token repeats as `nonce`.",
  algorithm: "The signature algorithm: `RS256` (default) or `ES256`.",
  "IdentityToken.token": "The token: a JWT, signed by the service.",
  "NewSignature.url": "The absolute address of the request.",
  "NewSignature.headers": "Further header fields of the request that the signature covers, at most 20.",
  content_digest:
    "The digest of the body as `Content-Digest` (RFC 9530), such as `sha-256=:…:`. The signature covers it.",
  "RequestSignature.headers": "The header fields to add to the request.",
  proof:
    "A JWT that the private key signed: `aud` is the base address of the service, `sub` the DID of the Identity, `iat` at most five minutes ago.",
}
