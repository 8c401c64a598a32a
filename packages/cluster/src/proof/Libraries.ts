/** The libraries of proofs, loaded on first use, since most processes sign and verify nothing. */

/** JWS, JWT and JWK. */
export const jose = () => import("jose")

/** HTTP message signatures (RFC 9421). */
export const httpSignatures = () => import("http-message-sig")
