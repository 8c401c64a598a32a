/**
 * Parses a structured header field (RFC 2045 section 5.1) into its value and its parameters, in order and undecoded,
 * for mail programs that decode them.
 */

export interface Structured {
  /** In lower case. */
  readonly value: string
  readonly parameters: ReadonlyArray<readonly [name: string, value: string]>
}

/** The maximum characters and parameters read. */
export const limits = { characters: 2_048, parameters: 50 }

/** Removes comments outside quoted strings. Linear time. */
export const withoutComments = (value: string): string => {
  let out = ""
  let depth = 0
  let quoted = false
  for (let at = 0; at < value.length; at++) {
    const char = value[at]!
    if (char === "\\" && (quoted || depth > 0)) {
      if (depth === 0) out += value.slice(at, at + 2)
      at++
    } else if (char === '"' && depth === 0) {
      quoted = !quoted
      out += char
    } else if (char === "(" && !quoted) depth++
    else if (char === ")" && depth > 0) depth--
    else if (depth === 0) out += char
  }
  return out
}

/**
 * Removes comments, except parentheses that are part of a value: in an unquoted file name, directly after another
 * character of a parameter, or unterminated. Also removes text between a quoted parameter and the next semicolon,
 * except in a file name, which it may continue. Linear time.
 */
export const withoutRemarks = (field: string): string => {
  let out = ""
  let depth = 0
  let quoted = false
  /** The name of the current parameter. Undefined in the field's first value, which has no name. */
  let name: string | undefined
  /**
   * For the current parameter: the offset of its name in `out`, whether its value has started, and whether the last
   * character belongs to it.
   */
  let begin = 0
  let hasStarted = false
  let adjoins = false
  let ended = false
  const isOfFile = () => /^(?:file)?name\b/.test(name ?? "")
  const isMeant = () => hasStarted && (adjoins || isOfFile())
  for (let at = 0; at < field.length; at++) {
    const char = field[at]!
    if (char === "\\" && (quoted || depth > 0)) {
      if (depth === 0) out += field.slice(at, at + 2)
      at++
    } else if (depth > 0) depth += char === "(" ? 1 : char === ")" ? -1 : 0
    else if (char === "(" && !quoted && !isMeant()) depth++
    else if (!ended || char === ";") {
      out += char
      if (char === '"') {
        ended = quoted && name !== undefined && name !== "" && !isOfFile()
        quoted = !quoted
      } else if (char === ";" && !quoted) ended = false
      if (!quoted && char === ";") {
        name = ""
        begin = out.length
        hasStarted = false
      } else if (!quoted && char === "=" && name === "") {
        name = out.slice(begin, -1).trim().toLowerCase()
        hasStarted = false
      } else if (name !== undefined && name !== "" && !/\s/.test(char)) hasStarted = true
      adjoins = !/\s/.test(char)
    }
  }
  return depth > 0 ? field : out
}

/** Splits at semicolons outside quoted strings. */
const split = (value: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let from = 0
  let quoted = false
  for (let at = 0; at < value.length; at++) {
    const char = value[at]
    if (char === "\\" && quoted) at++
    else if (char === '"') quoted = !quoted
    else if (char === ";" && !quoted) {
      pieces.push(value.slice(from, at))
      from = at + 1
    }
  }
  pieces.push(value.slice(from))
  return pieces
}

const unquoted = (text: string): string => {
  const trimmed = text.trim()
  if (!trimmed.startsWith('"')) return trimmed.split(/\s/, 1)[0] ?? ""
  return trimmed
    .slice(1)
    .replace(/(?<!\\)((?:\\\\)*)".*$/s, "$1")
    .replace(/\\(.)/gs, "$1")
}

export const read = (field: string): Structured => {
  const [first = "", ...rest] = split(withoutComments(field.slice(0, limits.characters)))
  const parameters: Array<readonly [string, string]> = []
  for (const piece of rest.slice(0, limits.parameters)) {
    const equals = piece.indexOf("=")
    const name = piece.slice(0, Math.max(0, equals)).trim().toLowerCase()
    if (name !== "" && !/\s/.test(name)) parameters.push([name, unquoted(piece.slice(equals + 1))])
  }
  return { value: first.trim().toLowerCase(), parameters }
}
