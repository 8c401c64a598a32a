/**
 * The libraries of proofs, loaded on first use, since most processes sign and verify nothing. The promises are kept, because
 * another `import()` of a loaded module still costs 10 us.
 */

const once = <A>(load: () => Promise<A>): (() => Promise<A>) => {
  let loaded: Promise<A> | undefined
  return () => (loaded ??= load())
}

/** JWS, JWT and JWK. */
export const jose = once(() => import("jose"))

/** HTTP message signatures (RFC 9421). */
export const httpSignatures = once(() => import("http-message-sig"))

/** Canonical JSON (RFC 8785). */
export const canonicalize = once(async () => (await import("canonicalize")).default)
