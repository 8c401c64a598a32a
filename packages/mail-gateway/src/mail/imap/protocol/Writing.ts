/** How strings are written to a client (RFC 9051 section 4.3): quoted where they may be, else as a literal. */

/** Longer ones are literals: some readers bound their lines. */
const quotedAtMost = 1_000

/** Printable ASCII. */
const plain = /^[\x20-\x7e]*$/

const escaped = (text: string) => text.replace(/["\\]/g, "\\$&")

/** A string of Unicode; where it is not ASCII its UTF-8 is a literal, which every client takes. */
export const string = (text: string): string =>
  plain.test(text) && text.length <= quotedAtMost ? `"${escaped(text)}"` : `{${Buffer.byteLength(text)}}\r\n${text}`

export const nstring = (text: string | null | undefined): string =>
  text === null || text === undefined ? "NIL" : string(text)

/** ASCII that needs no escape: what we wrote ourselves. */
export const quoted = (text: string): string => `"${escaped(text)}"`

/** An atom, where it can be one. */
export const astring = (text: string): string =>
  /^[A-Za-z0-9!#$&'+,./:;<=>?@^_`|~[-]+$/.test(text) && text.toUpperCase() !== "NIL" ? text : string(text)

/** Text for people: one line of printable ASCII. */
export const human = (text: string): string => text.replace(/[^\x20-\x7e]+/g, " ").slice(0, 400)
