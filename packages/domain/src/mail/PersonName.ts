/**
 * The display name of an address in a form that is safe to show: one line without characters that reverse text. A name
 * that contains an address is dropped, since it would show a different author.
 */

/** Maximum length of a name. */
const longest = 200

// oxlint-disable-next-line no-control-regex -- they are what is replaced
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
/** Characters that change the direction of text beyond the name (UAX 9). */
const turning = /\p{Bidi_Control}/gu
/** The at sign in its plain, full-width and small form. */
const at = /[@\uff20\ufe6b]/

/** Returns the name, or null if nothing remains that can be shown. */
export const shown = (name: string | null): string | null => {
  const line = (name ?? "").replace(turning, "").replace(controls, " ").trim().slice(0, longest).toWellFormed()
  return line === "" || at.test(line) ? null : line
}
