/**
 * The name that stands before an address, as a reader may be shown it: one line, whose order nothing turns around. A name
 * that holds an address would show another author than there is, so it is none.
 */

/** Characters of a name. */
const longest = 200

// oxlint-disable-next-line no-control-regex -- they are what is replaced
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
/** What turns text around, wherever the name ends (UAX 9). */
const turning = /\p{Bidi_Control}/gu
/** The sign, in full width, and small. */
const at = /[@\uff20\ufe6b]/

/** Null where nothing is left that could be shown. */
export const shown = (name: string | null): string | null => {
  const line = (name ?? "").replace(turning, "").replace(controls, " ").trim().slice(0, longest).toWellFormed()
  return line === "" || at.test(line) ? null : line
}
