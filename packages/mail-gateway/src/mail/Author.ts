/**
 * The single author of a message. Authentication and display both use this address. Parsing is strict where mail
 * readers differ: a second address, in any spelling, means that there is no author (RFC 5322 section 3.6.2, RFC 6854).
 */
import type { Address } from "@svc/domain/mail/Message"
import { domainToASCII } from "node:url"
import { getDomain } from "tldts"
import * as AddressList from "./mime/AddressList.ts"
import * as Decode from "./mime/Decode.ts"

/**
 * The maximum characters of a `From` field, of all address fields together, and the maximum number of addresses per
 * field.
 */
export const limits = { author: 4 * 1024, fields: 32 * 1024, addresses: 500 }

/** Parses the addresses of a field. Groups are flattened. */
export const addresses = (value: string | undefined, characters: number = limits.author): ReadonlyArray<Address> => {
  if (value === undefined || value === "" || characters <= 0) return []
  return AddressList.flat(value.slice(0, characters))
    .filter((entry) => "address" in entry && typeof entry.address === "string" && entry.address !== "")
    .slice(0, limits.addresses)
    .map((entry) => ({
      address: Decode.clean(entry.address ?? ""),
      name: Decode.words(entry.name ?? "") || null,
    }))
}

/** Matches dot-separated labels, none of them empty. */
const labels = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

/**
 * Normalizes a domain for comparison: A-labels, lower case, no trailing dot. Returns an empty string if it is not a
 * domain name.
 */
const normal = (domain: string): string => {
  const name = domain.trim().toLowerCase()
  if (name === "" || name.length > 255 || /[\s"<>(),;:\\@[\]/%?#*]/.test(name)) return ""
  const ascii = (/^[a-z0-9._-]+$/.test(name) ? name : domainToASCII(name)).replace(/\.$/, "")
  return labels.test(ascii) ? ascii : ""
}

/** Uses the suffixes of registries and of providers of subdomains, such as `github.io`. */
const suffixes = { allowIcannDomains: true, allowPrivateDomains: true, extractHostname: false, validateHostname: false }

/** Returns the registered domain. A public suffix is its own organisation. */
const organisation = (domain: string): string => {
  const name = normal(domain)
  return getDomain(name, suffixes) ?? name
}

/** Returns whether two domains belong to the same organisation (RFC 7489 section 3.2). */
export const aligned = (a: string, b: string): boolean => organisation(a) !== "" && organisation(a) === organisation(b)

export interface Author {
  readonly address: Address
  /** The author's domain as {@link normal} returns it. */
  readonly domain: string
}

/**
 * Returns the text outside quoted strings and comments, each replaced by a mark, since readers differ in whether the
 * surrounding text belongs together. Returns undefined if a string or comment is unterminated. Linear time.
 */
const bare = (value: string): string | undefined => {
  let out = ""
  let depth = 0
  let quoted = false
  for (let at = 0; at < value.length; at++) {
    const char = value[at]!
    if (char === "\\" && (quoted || depth > 0)) at++
    else if (quoted) quoted = char !== '"'
    else if (char === ")") {
      if (depth === 0) return undefined
      depth--
    } else if (char === "(" || (char === '"' && depth === 0)) {
      out += char === "(" ? " " : char
      if (char === "(") depth++
      else quoted = true
    } else if (depth === 0) out += char
  }
  return quoted || depth > 0 ? undefined : out
}

/**
 * Returns the domain after an `@`, or an empty string if it is ambiguous: a domain may contain white space and comments
 * (RFC 5322 section 4.4), which some readers join and others take for its end.
 */
const domainAt = (rest: string): string => {
  const [name] = /^[^\s<>,;]*/.exec(rest)!
  return /^[ \t]*(?:$|[<>,;])/.test(rest.slice(name.length)) ? normal(name) : ""
}

/** Returns the author that a `From` field names, or undefined if it names no author, several, or an ambiguous one. */
export const author = (value: string | undefined): Author | undefined => {
  if (value === undefined || value.length > limits.author) return undefined
  const plain = bare(value)
  if (plain === undefined) return undefined
  const [one, ...others] = addresses(value)
  if (one === undefined || others.length > 0) return undefined
  const at = one.address.lastIndexOf("@")
  const domain = normal(one.address.slice(at + 1))
  const local = one.address.slice(0, at)
  // Encoded words are not allowed in an address (RFC 2047 section 5). Programs that decode them would find a different
  // address.
  if (at <= 0 || domain === "" || /[\s<>(),;:\\"[\]@]|=\?/.test(local)) return undefined
  // Some readers show the first address, some the last, some split at commas, so all domains must agree.
  const domains = plain.split("@").slice(1)
  const agree = domains.every((rest) => domainAt(rest) === domain)
  return domains.length > 0 && agree ? { address: one, domain } : undefined
}
