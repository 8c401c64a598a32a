/**
 * Finds plain lines after Base64 content, which some mailing lists append to every message whatever its encoding. A
 * decoder would turn them into garbage. Only the end of a body is inspected, and only after complete Base64 groups;
 * other invalid characters are skipped, as RFC 2045 section 6.8 requires.
 */

/** The bytes inspected at the end of a body. */
const tailBytes = 8 * 1024

const isEncoded = (line: string) => line.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(line)

/** Returns whether a line cannot be Base64: it has inner white space, an invalid character, or is a rule. */
const isPlain = (line: string) => /[^A-Za-z0-9+/=_-]/.test(line) || /^[_=-]+$/.test(line)

/** Base64 lines are long; a shorter line may be an ordinary word. */
const isSurelyEncoded = (line: string) => line.length >= 40 && isEncoded(line)

/** Returns the offset at which the plain lines of a Base64 body start, or its length if no such lines exist. */
export const footerAt = (body: Buffer): number => {
  const from = Math.max(0, body.length - tailBytes)
  // The first line of the tail may be incomplete.
  const start = from === 0 ? 0 : body.indexOf(10, from) + 1
  if (start === 0 && from > 0) return body.length
  let at = start
  let isAfterWhole = false
  let begin: number | undefined
  for (const whole of body.toString("latin1", start).split("\n")) {
    const line = whole.trim()
    if (begin === undefined) {
      if (isPlain(line)) {
        if (!isAfterWhole) return body.length
        begin = at
      } else if (line !== "") isAfterWhole = isEncoded(line)
    } else if (isSurelyEncoded(line)) return body.length
    at += whole.length + 1
  }
  return begin ?? body.length
}
