/**
 * Acceptable redirects of clients (RFC 6749 section 3.1.2, RFC 8252 sections 7 and 8): `https`, `http` on the loopback
 * interface, or an app's private-use scheme. Hosts of this service are rejected, since an agent's Tunnel could collect
 * codes under its name. No I/O.
 */
import type { AddressBook } from "../Addresses.ts"

/** Maximum length of a redirect, and number of redirects of a client. */
const longestRedirect = 2000
export const mostRedirects = 20

const loopbacks = new Set(["localhost", "127.0.0.1", "[::1]"])
/** Widespread editors whose schemes have no dot, contrary to RFC 8252 section 7.1. */
const editors = new Set(["cursor:", "vscode:", "vscode-insiders:"])

const bare = (host: string) => host.toLowerCase().replace(/\.+$/, "")

/** Returns whether the service answers on the host; this includes the hosts of Tunnels. */
export const isOwnHost = (book: AddressBook, host: string): boolean => {
  const name = bare(host)
  const tunnels = bare(book.tunnelDomain)
  return (
    [book.baseUrl, book.profileBase].some((base) => bare(new URL(base).hostname) === name) ||
    name === tunnels ||
    name.endsWith(`.${tunnels}`)
  )
}

const isLoopback = (url: URL) => url.protocol === "http:" && loopbacks.has(url.hostname)

const isOwnOrigin = (book: AddressBook, url: URL) =>
  [book.baseUrl, book.profileBase].some((base) => new URL(base).host === url.host)

/** Parses a redirect as a browser would; returns undefined if it is not acceptable in any case. */
const read = (text: string): URL | undefined => {
  // Browsers strip or rewrite other characters, so the compared URL would differ from the visited one.
  if (text.length > longestRedirect || !/^[\x21-\x7e]+$/.test(text) || /[\\#]/.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.password !== "") return undefined
  // `http:localhost/cb` is absolute on its own but relative on a page of this service.
  return /^https?:$/.test(url.protocol) && !/^https?:\/\/[^/]/i.test(text) ? undefined : url
}

/** Returns whether a client may register the redirect. */
export const isAcceptable = (book: AddressBook, text: string): boolean => {
  const url = read(text)
  if (url === undefined) return false
  if (isLoopback(url)) return !isOwnOrigin(book, url)
  if (url.protocol === "https:") return url.hostname !== "" && !isOwnHost(book, url.hostname)
  // A private-use scheme is a reversed domain name of the app's vendor (RFC 8252 section 7.1).
  return url.protocol.includes(".") || editors.has(url.protocol)
}

/** Returns the redirect without its port if the program may choose the port (RFC 8252 section 7.3). */
export const withoutPort = (text: string): string => {
  const url = read(text)
  return url !== undefined && isLoopback(url) ? `http://${url.hostname}${url.pathname}${url.search}` : text
}

/** Returns whether the redirect is registered: an exact match, except for the port of a loopback redirect. */
export const matches = (requested: string, named: ReadonlyArray<string>): boolean =>
  named.includes(requested) || named.some((one) => isProgram(one) && withoutPort(one) === withoutPort(requested))

const isProgram = (text: string) => {
  const url = read(text)
  return url !== undefined && isLoopback(url)
}

/** The receiver of the code, as far as the redirect proves it. */
type Receiver =
  | { readonly _tag: "Site"; readonly host: string }
  | { readonly _tag: "Program"; readonly port: string }
  | { readonly _tag: "App"; readonly scheme: string }

/** Returns the receiver of a redirect that {@link isAcceptable}. */
export const receiverOf = (text: string): Receiver => {
  const url = new URL(text)
  if (isLoopback(url)) return { _tag: "Program", port: url.port === "" ? "80" : url.port }
  return url.protocol === "https:" ? { _tag: "Site", host: url.host } : { _tag: "App", scheme: url.protocol }
}

/** Returns the receiver as one word for lists: `claude.ai`, `localhost`, `cursor:`. */
export const hostOf = (text: string): string => {
  const receiver = receiverOf(text)
  return receiver._tag === "Site" ? receiver.host : receiver._tag === "App" ? receiver.scheme : new URL(text).hostname
}

/** Appends the parameters of the response to the redirect's own query. */
export const answering = (redirect: string, answer: Readonly<Record<string, string>>): string =>
  `${redirect}${redirect.includes("?") ? "&" : "?"}${new URLSearchParams(answer).toString()}`
