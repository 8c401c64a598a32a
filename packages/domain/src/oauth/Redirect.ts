/**
 * Where a client may have codes sent to (RFC 6749 section 3.1.2, RFC 8252 sections 7 and 8): `https`, `http` on this very
 * computer, or an app by a scheme of its own; never a host of ours, under whose name an agent's Tunnel could collect
 * codes. Pure.
 */
import type { AddressBook } from "../Addresses.ts"

/** Characters of a redirect at most, and redirects of a client. */
export const longestRedirect = 2000
export const mostRedirects = 20

const loopbacks = new Set(["localhost", "127.0.0.1", "[::1]"])
/** Editors whose schemes have no dot, against RFC 8252 section 7.1; they are what people use. */
const editors = new Set(["cursor:", "vscode:", "vscode-insiders:"])

const bare = (host: string) => host.toLowerCase().replace(/\.+$/, "")

/** Whether a host is one that we answer on, the Tunnels' included. */
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

/** Parses what a browser would go to; undefined for what may be no redirect at all. */
const read = (text: string): URL | undefined => {
  // A browser strips and rewrites the rest: what is compared must be what is gone to.
  if (text.length > longestRedirect || !/^[\x21-\x7e]+$/.test(text) || /[\\#]/.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.password !== "") return undefined
  // `http:localhost/cb` is an address by itself, and a path where it stands on a page of ours.
  return /^https?:$/.test(url.protocol) && !/^https?:\/\/[^/]/i.test(text) ? undefined : url
}

/** Whether a client may name it as a redirect. */
export const isAcceptable = (book: AddressBook, text: string): boolean => {
  const url = read(text)
  if (url === undefined) return false
  if (isLoopback(url)) return !isOwnOrigin(book, url)
  if (url.protocol === "https:") return url.hostname !== "" && !isOwnHost(book, url.hostname)
  // A private-use scheme is a domain of the app's maker backwards (RFC 8252 section 7.1).
  return url.protocol.includes(".") || editors.has(url.protocol)
}

/** The redirect without its port where that is the program's to choose (RFC 8252 section 7.3). */
export const withoutPort = (text: string): string => {
  const url = read(text)
  return url !== undefined && isLoopback(url) ? `http://${url.hostname}${url.pathname}${url.search}` : text
}

/** Whether it is one that the client has named: equal to the byte, but for the port of a program on this computer. */
export const matches = (asked: string, named: ReadonlyArray<string>): boolean =>
  named.includes(asked) || named.some((one) => isProgram(one) && withoutPort(one) === withoutPort(asked))

const isProgram = (text: string) => {
  const url = read(text)
  return url !== undefined && isLoopback(url)
}

/** Who gets the code, as far as that is proved by where it is sent to. */
export type Receiver =
  | { readonly _tag: "Site"; readonly host: string }
  | { readonly _tag: "Program"; readonly port: string }
  | { readonly _tag: "App"; readonly scheme: string }

/** Of a redirect that {@link isAcceptable}. */
export const receiverOf = (text: string): Receiver => {
  const url = new URL(text)
  if (isLoopback(url)) return { _tag: "Program", port: url.port === "" ? "80" : url.port }
  return url.protocol === "https:" ? { _tag: "Site", host: url.host } : { _tag: "App", scheme: url.protocol }
}

/** The receiver in one word, as lists show it: `claude.ai`, `localhost`, `cursor:`. */
export const hostOf = (text: string): string => {
  const receiver = receiverOf(text)
  return receiver._tag === "Site" ? receiver.host : receiver._tag === "App" ? receiver.scheme : new URL(text).hostname
}

/** The redirect with the answer's parameters behind its own. */
export const answering = (redirect: string, answer: Readonly<Record<string, string>>): string =>
  `${redirect}${redirect.includes("?") ? "&" : "?"}${new URLSearchParams(answer).toString()}`
