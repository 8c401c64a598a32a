/**
 * What leaves the process beside its answers (log entries, attributes of spans) carries no secret: members whose name
 * says that they hold one, and texts that look like one of ours or like a password in an address, are struck out.
 */
import { Cause } from "effect"

const struck = "<redacted>"

const secretName =
  /authorization|cookie|password|passwd|secret|token|credential$|(?:api|master|data|private|signing)[_-]?key/i

/** Our credentials and signing secrets by their prefixes, PEM keys, and the password of an address. */
const secretTexts: ReadonlyArray<readonly [RegExp, string]> = [
  [/\b(svc_(?:sess|admin|id|oat|ort|oac)_|whsec_)[\w+/=-]{8,}/g, `$1${struck}`],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${struck}`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, struck],
  [/(\w+:\/\/[^/\s:@]*:)[^/\s@]+@/g, `$1${struck}@`],
  [/([?&](?:token|code|key|signature)=)[^&\s"']+/gi, `$1${struck}`],
]

export const ofText = (text: string): string =>
  secretTexts.reduce((left, [pattern, replacement]) => left.replace(pattern, replacement), text)

/** A value under its name; objects and lists with all they hold. */
export const of = (name: string, value: unknown): unknown => {
  if (value !== null && value !== undefined && secretName.test(name)) return struck
  if (typeof value === "string") return ofText(value)
  if (Array.isArray(value)) return value.map((one) => of("", one))
  // What it says is in no member of its own.
  if (value instanceof Error) return ofText(Cause.pretty(Cause.die(value)))
  if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, of(member, inner)]))
  }
  return value
}
