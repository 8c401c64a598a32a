/** Loads `jose` (JWS, JWT and JWK) on first use, since most processes sign and verify nothing. */
export const jose = () => import("jose")
