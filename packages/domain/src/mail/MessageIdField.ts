/**
 * Message ids in header fields (RFC 5322 section 3.6.4). The part before the @ may be a quoted string with spaces,
 * which the current grammar no longer allows but some programs still write.
 */

/** Maximum length of an id. */
const atMost = 502

/** Angle brackets around text without white space, which is only allowed within a quoted string. */
const each = /<(?:"[^"<>\r\n]{0,250}"|[^<>\s"]){1,500}>|<[^<>\s]{1,500}>/g

/** Returns the ids of a field in their order. */
export const all = (field: string): ReadonlyArray<string> =>
  Array.from(field.slice(0, 32 * 1024).matchAll(each), ([id]) => id).filter(({ length }) => length <= atMost)

/** A strictly valid id: one @, printable ASCII. */
export const strict = /^<(?:[!-;=?A-~]{1,250}|"[ !#-;=?-[\]-~]{1,248}")@[!-;=?A-~]{1,250}>$/u

/** Returns whether our header fields may contain this foreign id, even if it lacks the @. */
export const isSendable = (id: string): boolean =>
  id.length <= atMost && (/^<[!-;=?-~]{1,500}>$/.test(id) || /^<(?:"[ !#-;=?-~]{0,250}"|[!#-;=?-~]){1,500}>$/.test(id))
