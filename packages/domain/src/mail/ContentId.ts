/**
 * The Content-ID of an inline image: an id without angle brackets (RFC 2045 section 7, RFC 2392), limited to characters
 * that need no escaping in a header field or in quotes.
 */
const pattern = /^[\w.+$%=!#&'*/?^{}~-]{1,120}(?:@[\w.+$%-]{1,120})?$/u

export { pattern }

/** Returns the id of a `Content-ID` field, or undefined if it is not usable. */
export const ofField = (value: string | undefined): string | undefined => {
  const [, id] = /^<([^<>]{1,241})>$/.exec(value ?? "") ?? []
  return id !== undefined && pattern.test(id) ? id : undefined
}
