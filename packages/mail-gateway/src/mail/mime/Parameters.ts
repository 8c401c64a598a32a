/**
 * A structured header field as it is written (RFC 2045 section 5.1): its value and its parameters, not decoded, in their
 * order. For readers that decode themselves, as mail programs do.
 */

export interface Structured {
  /** Lower case. */
  readonly value: string
  readonly parameters: ReadonlyArray<readonly [name: string, value: string]>
}

/** Characters of a field, and parameters, that are read. */
export const limits = { characters: 2_048, parameters: 50 }

/** Without comments; what stands in quotation marks stays. Linear. */
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
 * Without comments, but for parentheses that are meant to be read: within a file name that somebody wrote without quotation
 * marks, right behind another character of a parameter, and where one of them has no end. And without what stands behind a
 * parameter in quotation marks, where a semicolon or the end should; of a file name it may be the rest. Linear.
 */
export const withoutRemarks = (field: string): string => {
  let out = ""
  let depth = 0
  let quoted = false
  /** The name of the parameter whose value is read: undefined for the first value, which is of none. */
  let name: string | undefined
  /** Of a parameter: where its name begins in `out`, whether its value has, and whether it goes on to here. */
  let begin = 0
  let begun = false
  let adjoins = false
  let ended = false
  const isOfFile = () => /^(?:file)?name\b/.test(name ?? "")
  const isMeant = () => begun && (adjoins || isOfFile())
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
        begun = false
      } else if (!quoted && char === "=" && name === "") {
        name = out.slice(begin, -1).trim().toLowerCase()
        begun = false
      } else if (name !== undefined && name !== "" && !/\s/.test(char)) begun = true
      adjoins = !/\s/.test(char)
    }
  }
  return depth > 0 ? field : out
}

/** At semicolons that stand outside quotation marks. */
const divided = (value: string): ReadonlyArray<string> => {
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
  const [first = "", ...rest] = divided(withoutComments(field.slice(0, limits.characters)))
  const parameters: Array<readonly [string, string]> = []
  for (const piece of rest.slice(0, limits.parameters)) {
    const equals = piece.indexOf("=")
    const name = piece.slice(0, Math.max(0, equals)).trim().toLowerCase()
    if (name !== "" && !/\s/.test(name)) parameters.push([name, unquoted(piece.slice(equals + 1))])
  }
  return { value: first.trim().toLowerCase(), parameters }
}
