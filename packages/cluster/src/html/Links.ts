/**
 * Where the links of a message lead, and whether their words say something else: a link whose words name a host that is not
 * the target's is how people are led astray. Hosts are compared by the domain that somebody registered, so that
 * `example.com` and `www.example.com` are one.
 */
import type { Link } from "@svc/domain/mail/Message"
import { parse } from "tldts"

/** Links of one message, characters of a target and of the words of a link. */
export const limits = { links: 100, url: 2_048, words: 200 }

/** Endings of file names that are top-level domains too. */
const ofFiles = /\.(?:md|pl|ps|py|rs|sh|zip|mov)$/i

// oxlint-disable-next-line no-control-regex -- browsers leave these out of an address
const dropped = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029]+/g

/** Returns the address that a link leads to, as it is written; undefined for one that leads nowhere outside the message. */
export const target = (href: string, base: string | undefined): string | undefined => {
  if (href.length > limits.url * 2) return undefined
  const written = href.replace(dropped, "")
  const url = URL.parse(written, base)
  if (url === null || !/^(?:https?|ftp|mailto|tel):$/.test(url.protocol)) return undefined
  // What a browser reads otherwise than a person is given as the browser reads it.
  const isPlain = /^(?:https?|ftp):\/\/[a-z0-9.-]+(?::\d+)?(?:[/?#][!-[\]-~]*)?$/i.test(written)
  const shown = isPlain || url.protocol === "mailto:" || url.protocol === "tel:" ? written : url.href
  return shown.length > limits.url ? undefined : shown
}

const hostOf = (url: string): string => {
  const { protocol, hostname = "", pathname = "" } = URL.parse(url) ?? {}
  if (protocol !== "mailto:") return hostname
  const address = pathname.split(",", 1)[0]!
  return URL.parse(`http://${address.slice(address.lastIndexOf("@") + 1)}`)?.hostname ?? ""
}

/** The domain that somebody registered, and whether its top-level domain is one that hosts have. */
const registered = (host: string) => {
  const { domain, isIcann, isIp, isPrivate, publicSuffix } = parse(host, { allowPrivateDomains: true })
  const isKnown = isIcann === true || isPrivate === true || isIp === true || reserved.has(publicSuffix ?? "")
  return { domain: domain ?? host, isKnown }
}

/** Top-level domains of private networks and of examples (RFC 2606, RFC 6761). */
const reserved = new Set([
  "example",
  "test",
  "invalid",
  "localhost",
  "local",
  "internal",
  "onion",
  "lan",
  "home",
  "corp",
])

/** Names with dots, with the scheme that may stand before them. */
const names =
  /(https?:\/\/(?:[^\s/@]*@)?)?((?:\d{1,3}\.){3}\d{1,3}|(?:[\p{L}\p{N}_-]+[.\u3002\uff0e\uff61])+[\p{L}\p{N}-]{2,})(?![\p{L}\p{N}_.-]*@)/giu

/** Whether the words of a link name another host than its target. */
export const isDeceptive = (words: string, url: string): boolean => {
  const own = registered(hostOf(url)).domain
  const path = (URL.parse(url)?.pathname ?? "").toLowerCase()
  for (const [, scheme, name = ""] of words.slice(0, 1_000).matchAll(names)) {
    const host = URL.parse(`http://${name}`)?.hostname ?? ""
    const { domain, isKnown } = registered(host)
    if (host === "" || domain === own) continue
    if (scheme !== undefined || /^www\./i.test(name)) return true
    // "README.md" is a file, "10.5" a number, "e.g." an abbreviation.
    if (ofFiles.test(name) || path.endsWith(`/${name.toLowerCase()}`)) continue
    if (/^[\d.]+$/.test(name) ? /^(?:\d{1,3}\.){3}\d{1,3}$/.test(name) : isKnown) return true
  }
  return false
}

/** A link as callers see it. */
export const link = (words: string, url: string): Link => ({
  url,
  text: words.slice(0, limits.words).toWellFormed(),
  deceptive: isDeceptive(words, url),
})

/** The addresses in a plain text. */
export const ofText = (text: string): ReadonlyArray<Link> => {
  const found = new Set<string>()
  for (const [written] of text.slice(0, 512 * 1024).matchAll(/\bhttps?:\/\/[^\s<>"]{1,2048}/gi)) {
    const url = target(trimmed(written), undefined)
    if (url !== undefined) found.add(url)
    if (found.size >= limits.links) break
  }
  return Array.from(found, (url) => link(url, url))
}

/** Without the punctuation of the sentence that an address ends, and without a bracket that it does not open. */
const trimmed = (url: string): string => {
  const end = url.replace(/[.,;:!?'*_]+$/, "")
  return end.endsWith(")") && !end.includes("(") ? trimmed(end.slice(0, -1)) : end
}
