/** Writes strings to a client (RFC 9051 section 4.3): quoted if possible, otherwise as a literal. */

/** Longer strings are literals, since some clients limit the line length. */
const quotedAtMost = 1_000

/** Printable ASCII. */
const plain = /^[\x20-\x7e]*$/

const escaped = (text: string) => text.replace(/["\\]/g, "\\$&")

/** Writes a string. A string that is not ASCII becomes a UTF-8 literal, which every client accepts. */
export const string = (text: string): string =>
  plain.test(text) && text.length <= quotedAtMost ? `"${escaped(text)}"` : `{${Buffer.byteLength(text)}}\r\n${text}`

export const nstring = (text: string | null | undefined): string =>
  text === null || text === undefined ? "NIL" : string(text)

/** Writes an atom if possible, otherwise a string. */
export const astring = (text: string): string =>
  /^[A-Za-z0-9!#$&'+,./:;<=>?@^_`|~[-]+$/.test(text) && text.toUpperCase() !== "NIL" ? text : string(text)

/** Reduces text for people to one line of printable ASCII. */
export const human = (text: string): string => text.replace(/[^\x20-\x7e]+/g, " ").slice(0, 400)
