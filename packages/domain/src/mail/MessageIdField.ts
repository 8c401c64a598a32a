/**
 * Message ids as header fields hold them (RFC 5322 section 3.6.4). The part before the @ may be a quoted string with spaces,
 * which the current grammar no longer allows and some programs still write.
 */

/** Characters of one id at most. */
const atMost = 502

/** Angle brackets with anything between them but white space, which only a quoted string may hold. */
const each = /<(?:"[^"<>\r\n]{0,250}"|[^<>\s"]){1,500}>|<[^<>\s]{1,500}>/g

/** Returns the ids of a field in their order. */
export const all = (field: string): ReadonlyArray<string> =>
  Array.from(field.slice(0, 32 * 1024).matchAll(each), ([id]) => id).filter(({ length }) => length <= atMost)

/** An id of our own kind or of a strict program: one @, printable ASCII. */
export const strict = /^<(?:[!-;=?A-~]{1,250}|"[ !#-;=?-[\]-~]{1,248}")@[!-;=?A-~]{1,250}>$/u

/** Whether a header field of ours can carry an id that a stranger wrote, even one without the @ that belongs in it. */
export const isSendable = (id: string): boolean =>
  id.length <= atMost && (/^<[!-;=?-~]{1,500}>$/.test(id) || /^<(?:"[ !#-;=?-~]{0,250}"|[!#-;=?-~]){1,500}>$/.test(id))
