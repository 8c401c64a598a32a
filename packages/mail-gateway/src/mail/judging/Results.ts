/**
 * The `Authentication-Results` field (RFC 8601): writes the service's own, and finds forged ones that claim its name,
 * in any spelling.
 */
import { domainToASCII } from "node:url"
import libmime from "libmime"
import { type Row, valueOf } from "../mime/Header.ts"
import { withoutComments } from "../mime/Parameters.ts"
import * as EncodedWords from "../mime/EncodedWords.ts"

/** Returns the field without its final line break. */
export const field = (host: string, info: ReadonlyArray<string>): string =>
  `Authentication-Results: ${host};\r\n ${info.map((one) => libmime.foldLines(one, 160)).join(";\r\n ")}`

/** Returns the offset after comments, which may nest, and white space, or undefined if a comment is unterminated. */
const afterComments = (text: string, from: number): number | undefined => {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]!
    if (char === "\\" && depth > 0) at++
    else if (char === "(") depth++
    else if (char === ")" && depth > 0) depth--
    else if (depth === 0 && !/\s/.test(char)) return at
  }
  return depth === 0 ? text.length : undefined
}

/** Returns the authserv-id: a token or a quoted string (section 2.2). Undefined if it cannot be parsed. */
const serviceOf = (value: string): string | undefined => {
  const from = afterComments(value, 0)
  if (from === undefined) return undefined
  if (value[from] !== '"') return /^[^\s()<>@,;:\\"/[\]?=]+/.exec(value.slice(from, from + 1_000))?.[0]
  let out = ""
  for (let at = from + 1; at < value.length; at++) {
    const char = value[at]!
    if (char === '"') return out.trim()
    if (char === "\\") at++
    out += value[at] ?? ""
  }
  return undefined
}

const same = (name: string, host: string): boolean => {
  const plain = name.toLowerCase().replace(/\.+$/, "")
  return plain === host || domainToASCII(plain) === host
}

/** Returns the name as a lenient parser reads it: without comments, quotation marks, white space and version. */
const lenientName = (value: string): string =>
  withoutComments(value.split(";", 1)[0]!.slice(0, 1_000))
    .replace(/\s\d+\s*$/, "")
    .replace(/[\s"\\\p{C}]+/gu, "")

/**
 * Returns whether the field claims the service's name. A field whose name cannot be parsed does if it contains that
 * name.
 */
const claims = (value: string, host: string): boolean => {
  const service = serviceOf(value)
  return service === undefined
    ? value.toLowerCase().includes(host)
    : same(service, host) || same(lenientName(value), host)
}

/** Returns the forged fields: those that claim the service's name on arrival (section 5). */
export const forged = (raw: Buffer, rows: ReadonlyArray<Row>, host: string): ReadonlyArray<Row> => {
  const ours = host.toLowerCase()
  return rows.filter((row) => {
    if (row.key !== "authentication-results") return false
    const value = valueOf(raw, row)
    return claims(value, ours) || claims(EncodedWords.decode(value), ours)
  })
}
