/**
 * What an image within HTML is called by: an id without angle brackets (RFC 2045 section 7, RFC 2392), of characters that
 * stand in a header field and between quotes as they are.
 */
const pattern = /^[\w.+$%=!#&'*/?^{}~-]{1,120}(?:@[\w.+$%-]{1,120})?$/u

export { pattern }

/** The id of a `Content-ID` field; undefined where it has none that can stand. */
export const ofField = (value: string | undefined): string | undefined => {
  const [, id] = /^<([^<>]{1,241})>$/.exec(value ?? "") ?? []
  return id !== undefined && pattern.test(id) ? id : undefined
}
