/**
 * Plain lines behind a text in base64: what some list programs put below every message, whatever its encoding. A decoder
 * would make letters of them that nobody wrote. Found in the end of a body alone, and only behind whole groups of base64;
 * anything else that is no base64 is skipped, as RFC 2045 section 6.8 has it.
 */

/** Bytes at the end of a body that are looked at. */
const tailBytes = 8 * 1024

const isEncoded = (line: string) => line.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(line)

/** No line of base64: white space within, a character that it does not have, or a rule. */
const isPlain = (line: string) => /[^A-Za-z0-9+/=_-]/.test(line) || /^[_=-]+$/.test(line)

/** Lines of base64 are long; below that a word may look like one. */
const isSurelyEncoded = (line: string) => line.length >= 40 && isEncoded(line)

/** The offset at which the plain lines of a base64 body begin; its length where it has none. */
export const footerAt = (body: Buffer): number => {
  const from = Math.max(0, body.length - tailBytes)
  // What a tail begins with may be half a line.
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
