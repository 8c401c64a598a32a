/**
 * The links of a message and their targets. A link is deceptive if its text names another host than its target, as in
 * phishing. Hosts are compared by their registrable domain, so that `example.com` and `www.example.com` are the same.
 */
import type { Link } from "@svc/domain/mail/Message"
import { parse } from "tldts"

/** Limits for the links of one message, and for the characters of a target and of a link text. */
export const limits = { links: 100, url: 2_048, words: 200 }

/** File name extensions that are also top-level domains. */
const ofFiles = /\.(?:md|pl|ps|py|rs|sh|zip|mov)$/i

// oxlint-disable-next-line no-control-regex -- browsers remove these from a URL
const dropped = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029]+/g

/** Returns a link's target as written, or undefined if it does not lead outside the message. */
export const target = (href: string, base: string | undefined): string | undefined => {
  if (href.length > limits.url * 2) return undefined
  const written = href.replace(dropped, "")
  const url = URL.parse(written, base)
  if (url === null || !/^(?:https?|ftp|mailto|tel):$/.test(url.protocol)) return undefined
  // A URL that browsers and people might read differently is returned as browsers parse it.
  const isPlain = /^(?:https?|ftp):\/\/[a-z0-9.-]+(?::\d+)?(?:[/?#][!-[\]-~]*)?$/i.test(written)
  const shown = isPlain || url.protocol === "mailto:" ? written : url.href
  return shown.length > limits.url ? undefined : shown
}

const hostOf = (url: string): string => {
  const { protocol, hostname = "", pathname = "" } = URL.parse(url) ?? {}
  if (protocol !== "mailto:") return hostname
  const address = pathname.split(",", 1)[0]!
  return URL.parse(`http://${address.slice(address.lastIndexOf("@") + 1)}`)?.hostname ?? ""
}

/** Returns the registrable domain, and whether its top-level domain exists. */
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

/** Matches host names with dots, optionally with a scheme. */
const names =
  /(https?:\/\/(?:[^\s/@]*@)?)?((?:\d{1,3}\.){3}\d{1,3}|(?:[\p{L}\p{N}_-]+[.\u3002\uff0e\uff61])+[\p{L}\p{N}-]{2,})(?![\p{L}\p{N}_.-]*@)/giu

/** Returns whether a link text names another host than its target. */
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

/** Creates a link for the API. */
export const link = (words: string, url: string): Link => ({
  url,
  text: words.slice(0, limits.words).toWellFormed(),
  deceptive: isDeceptive(words, url),
})

/** Returns the links in a plain text. */
export const ofText = (text: string): ReadonlyArray<Link> => {
  const found = new Set<string>()
  for (const [written] of text.slice(0, 512 * 1024).matchAll(/\bhttps?:\/\/[^\s<>"]{1,2048}/gi)) {
    const url = target(trimmed(written), undefined)
    if (url !== undefined) found.add(url)
    if (found.size >= limits.links) break
  }
  return Array.from(found, (url) => link(url, url))
}

/** Removes trailing punctuation and an unmatched closing bracket from a URL in a sentence. */
const trimmed = (url: string): string => {
  const end = url.replace(/[.,;:!?'*_]+$/, "")
  return end.endsWith(")") && !end.includes("(") ? trimmed(end.slice(0, -1)) : end
}
