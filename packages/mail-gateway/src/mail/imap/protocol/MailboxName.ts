/**
 * Names of mailboxes: as the store has them (Unicode, `/` between levels), as clients without UTF8=ACCEPT write them
 * (modified UTF-7, RFC 3501 section 5.1.3), and the patterns of LIST.
 */

export const delimiter = "/"

/** Bytes of a name in UTF-8, and levels. */
export const limits = { bytes: 255, levels: 10 }

const encodeShifted = (text: string): string => {
  const bytes = Buffer.alloc(text.length * 2)
  for (let at = 0; at < text.length; at++) bytes.writeUInt16BE(text.charCodeAt(at), at * 2)
  return `&${bytes.toString("base64").replace(/=+$/, "").replaceAll("/", ",")}-`
}

/** Modified UTF-7 of a name. */
export const encode = (name: string): string =>
  name.replace(/&|[^\x20-\x7e]+/g, (found) => (found === "&" ? "&-" : encodeShifted(found)))

const decodeShifted = (text: string): string | undefined => {
  if (!/^[A-Za-z0-9+,]+$/.test(text)) return undefined
  const bytes = Buffer.from(text.replaceAll(",", "/"), "base64")
  let out = ""
  for (let at = 0; at + 1 < bytes.length; at += 2) out += String.fromCharCode(bytes.readUInt16BE(at))
  // One spelling for each name: what would be written otherwise is none.
  return encodeShifted(out) === `&${text}-` && out.isWellFormed() && !/[\x20-\x7e]/.test(out) ? out : undefined
}

/** Undefined where it is no modified UTF-7. */
export const decode = (text: string): string | undefined => {
  if (/[^\x20-\x7e]/.test(text)) return undefined
  let valid = true
  const out = text.replace(/&([^-]*)(-?)/g, (_, shifted: string, end: string) => {
    const decoded = end === "" ? undefined : shifted === "" ? "&" : decodeShifted(shifted)
    if (decoded === undefined) valid = false
    return decoded ?? ""
  })
  return valid ? out : undefined
}

/** INBOX is INBOX in any case, also as the first level (RFC 9051 section 5.1). */
export const canonical = (name: string): string =>
  name.replace(/^[^/]+/, (first) => (first.toUpperCase() === "INBOX" ? "INBOX" : first))

/** What a mailbox may be called: levels with something in them, no control characters, no wildcards. */
export const isValid = (name: string): boolean =>
  name !== "" &&
  Buffer.byteLength(name) <= limits.bytes &&
  name.split(delimiter).length <= limits.levels &&
  name.split(delimiter).every((level) => level.trim() !== "") &&
  !/[\p{Cc}*%\u2028\u2029\ufeff]/u.test(name) &&
  name.isWellFormed()

/** The levels above a name, the nearest last. */
export const parents = (name: string): ReadonlyArray<string> => {
  const levels = name.split(delimiter)
  return levels.slice(1).map((_, at) => levels.slice(0, at + 1).join(delimiter))
}

/**
 * Whether a pattern of LIST has the name: `*` is anything, `%` anything within a level. The work is in proportion to
 * both, whatever the pattern is: a set of places, no search back.
 */
export const matcher = (pattern: string): ((name: string) => boolean) => {
  // Neighbouring wildcards say no more than the widest of them.
  const parts = [
    ...canonical(pattern)
      .replace(/[*%]*\*[*%]*/g, "*")
      .replace(/%+/g, "%"),
  ]
  return (name) => {
    let places = new Set([0])
    const spread = (from: Set<number>) => {
      for (const place of from) if (parts[place] === "*" || parts[place] === "%") from.add(place + 1)
      return from
    }
    spread(places)
    for (const char of name) {
      const next = new Set<number>()
      for (const place of places) {
        const part = parts[place]
        if (part === "*" || (part === "%" && char !== delimiter)) next.add(place)
        else if (part === char) next.add(place + 1)
      }
      places = spread(next)
      if (places.size === 0) return false
    }
    return places.has(parts.length)
  }
}
