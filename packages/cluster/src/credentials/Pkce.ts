/** Proof Key for Code Exchange (RFC 7636). */
import { hash, timingSafeEqual } from "node:crypto"

/** Checks the PKCE verifier by S256 (RFC 7636 section 4.6). */
export const verifierFits = (verifier: string, challenge: string) => {
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) return false
  const made = Buffer.from(hash("sha256", verifier, "base64url"))
  const wanted = Buffer.from(challenge)
  return made.length === wanted.length && timingSafeEqual(made, wanted)
}
