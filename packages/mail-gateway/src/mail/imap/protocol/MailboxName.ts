/**
 * Names of mailboxes: the stored form (Unicode, `/` between levels), modified UTF-7 for clients without UTF8=ACCEPT
 * (RFC 3501 section 5.1.3), and the patterns of LIST.
 */

export const delimiter = "/"

/** Maximum bytes in UTF-8 and maximum levels of a name. */
export const limits = { bytes: 255, levels: 10 }

const encodeShifted = (text: string): string => {
  const bytes = Buffer.alloc(text.length * 2)
  for (let at = 0; at < text.length; at++) bytes.writeUInt16BE(text.charCodeAt(at), at * 2)
  return `&${bytes.toString("base64").replace(/=+$/, "").replaceAll("/", ",")}-`
}

/** Encodes a name in modified UTF-7. */
export const encode = (name: string): string =>
  name.replace(/&|[^\x20-\x7e]+/g, (found) => (found === "&" ? "&-" : encodeShifted(found)))

const decodeShifted = (text: string): string | undefined => {
  const bytes = Buffer.from(text.replaceAll(",", "/"), "base64")
  let out = ""
  for (let at = 0; at + 1 < bytes.length; at += 2) out += String.fromCharCode(bytes.readUInt16BE(at))
  // Each name has one valid encoding; others are rejected.
  return encodeShifted(out) === `&${text}-` && out.isWellFormed() && !/[\x20-\x7e]/.test(out) ? out : undefined
}

/** Decodes modified UTF-7; returns undefined if it is invalid. */
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

/** Normalizes INBOX, which is case-insensitive, also as the first level (RFC 9051 section 5.1). */
export const canonical = (name: string): string =>
  name.replace(/^[^/]+/, (first) => (first.toUpperCase() === "INBOX" ? "INBOX" : first))

/** Whether a mailbox may have this name: no empty levels, control characters or wildcards. */
export const isValid = (name: string): boolean =>
  name !== "" &&
  Buffer.byteLength(name) <= limits.bytes &&
  name.split(delimiter).length <= limits.levels &&
  name.split(delimiter).every((level) => level.trim() !== "") &&
  !/[\p{Cc}*%\u2028\u2029\ufeff]/u.test(name) &&
  name.isWellFormed()

/** Returns the ancestors of a name, the nearest last. */
export const parents = (name: string): ReadonlyArray<string> => {
  const levels = name.split(delimiter)
  return levels.slice(1).map((_, at) => levels.slice(0, at + 1).join(delimiter))
}

/**
 * Returns a matcher for a LIST pattern: `*` matches anything, `%` anything within a level. It tracks all possible
 * positions instead of backtracking, so the cost is linear in pattern and name.
 */
export const matcher = (pattern: string): ((name: string) => boolean) => {
  // Adjacent wildcards are equivalent to the widest of them.
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
