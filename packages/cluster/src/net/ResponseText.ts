/** How the body of an answer begins, as text to be shown to whom it concerns. */

/** Bytes of it that are kept. */
export const shownAtMost = 1024

/** Text that any store takes, of bytes that may be anything; a letter that was cut is left out. Null where there is none. */
export const shownText = (begins: Buffer): string | null =>
  begins.length === 0 ? null : new TextDecoder().decode(begins, { stream: true }).replaceAll("\0", "\uFFFD")
