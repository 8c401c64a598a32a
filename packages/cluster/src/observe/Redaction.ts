/**
 * Removes secrets from log entries and span attributes: members whose names indicate a secret, and texts that look like a
 * credential of the service or a password in a URL.
 */
import { Cause } from "effect"

const struck = "<redacted>"

const secretName =
  /authorization|cookie|password|passwd|secret|token|credential$|(?:api|master|data|private|signing)[_-]?key/i

/** Credentials and signing secrets by their prefixes, PEM keys, and passwords in URLs. */
const secretTexts: ReadonlyArray<readonly [RegExp, string]> = [
  [/\b(svc_(?:sess|admin|id|oat|ort|oac)_|whsec_)[\w+/=-]{8,}/g, `$1${struck}`],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${struck}`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, struck],
  [/(\w+:\/\/[^/\s:@]*:)[^/\s@]+@/g, `$1${struck}@`],
  [/([?&](?:token|code|key|signature)=)[^&\s"']+/gi, `$1${struck}`],
]

export const ofText = (text: string): string =>
  secretTexts.reduce((left, [pattern, replacement]) => left.replace(pattern, replacement), text)

/** Redacts a value by its name and content, including all members of objects and lists. */
export const of = (name: string, value: unknown): unknown => {
  if (value !== null && value !== undefined && secretName.test(name)) return struck
  if (typeof value === "string") return ofText(value)
  if (Array.isArray(value)) return value.map((entry) => of("", entry))
  // The message and stack of an error are not enumerable members.
  if (value instanceof Error) return ofText(Cause.pretty(Cause.die(value)))
  if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, of(member, inner)]))
  }
  return value
}
