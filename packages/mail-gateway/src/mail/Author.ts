/**
 * The one address a message is from. What is authenticated and what is shown go by this alone, and it is strict where
 * readers differ: another address beside it, in any spelling, leaves no author (RFC 5322 section 3.6.2, RFC 6854).
 */
import type { Address } from "@svc/domain/mail/Message"
import { domainToASCII } from "node:url"
import { getDomain } from "tldts"
import * as AddressList from "./mime/AddressList.ts"
import * as Decode from "./mime/Decode.ts"

/** Characters that are read of an author, and of the address fields of a message together: hundreds of recipients. */
export const limits = { author: 4 * 1024, fields: 32 * 1024, addresses: 500 }

/** The addresses of a field, groups flattened. */
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

/** None of which is empty. */
const labels = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

/** A domain as it is compared: A-labels, lower case, without the root's dot. Empty for what is no domain name. */
export const normal = (domain: string): string => {
  const name = domain.trim().toLowerCase()
  if (name === "" || name.length > 255 || /[\s"<>(),;:\\@[\]/%?#*]/.test(name)) return ""
  const ascii = (/^[a-z0-9._-]+$/.test(name) ? name : domainToASCII(name)).replace(/\.$/, "")
  return labels.test(ascii) ? ascii : ""
}

/** Public suffixes of registries and of those who give out names below their own, as `github.io`. */
const suffixes = { allowIcannDomains: true, allowPrivateDomains: true, extractHostname: false, validateHostname: false }

/** The domain that was registered; of a public suffix, which nobody registered, only itself. */
export const organisation = (domain: string): string => {
  const name = normal(domain)
  return getDomain(name, suffixes) ?? name
}

/** Whether two domains belong to one organisation (RFC 7489 section 3.2). */
export const aligned = (a: string, b: string): boolean => organisation(a) !== "" && organisation(a) === organisation(b)

export interface Author {
  readonly address: Address
  /** {@link normal}. */
  readonly domain: string
}

/**
 * What stands outside quoted strings and comments, each of which leaves a mark where it stood: readers differ in whether what
 * is around it goes together. Undefined where one does not end. Linear.
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
 * The domain that stands behind an `@`; empty where it could go on: a domain may have white space and comments within it
 * (RFC 5322 section 4.4), which some readers close up, and others take for its end.
 */
const domainAt = (rest: string): string => {
  const [name] = /^[^\s<>,;]*/.exec(rest)!
  return /^[ \t]*(?:$|[<>,;])/.test(rest.slice(name.length)) ? normal(name) : ""
}

/** The author that a `From` names; undefined for none, several, or what could be read as another. */
export const author = (value: string | undefined): Author | undefined => {
  if (value === undefined || value.length > limits.author) return undefined
  const plain = bare(value)
  if (plain === undefined) return undefined
  const [one, ...others] = addresses(value)
  if (one === undefined || others.length > 0) return undefined
  const at = one.address.lastIndexOf("@")
  const domain = normal(one.address.slice(at + 1))
  const local = one.address.slice(0, at)
  // An encoded word has no place in an address (RFC 2047 section 5); programs that decode it find another address there.
  if (at <= 0 || domain === "" || /[\s<>(),;:\\"[\]@]|=\?/.test(local)) return undefined
  // Some readers show the first thing with an @, some the last, some split at commas: there must be nothing to choose.
  const domains = plain.split("@").slice(1)
  const agree = domains.every((rest) => domainAt(rest) === domain)
  return domains.length > 0 && agree ? { address: one, domain } : undefined
}
