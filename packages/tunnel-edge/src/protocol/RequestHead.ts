/**
 * One request head as the public edge lets it through (RFC 9110, RFC 9112): judged strictly, so that whoever reads behind
 * it reads the same, and written anew with our own forwarding fields. Stricter than Node's parser.
 */

/** Where a request is refused: the status, and why in words. */
export class Refusal extends Error {
  readonly status: 400 | 421 | 431 | 505
  constructor(status: Refusal["status"], message: string) {
    super(message)
    this.status = status
  }
}

export const limits = { headBytes: 16 * 1024, headers: 100, chunkLine: 18, emptyLines: 4 }

export type Body =
  | { readonly _tag: "None" }
  | { readonly _tag: "Length"; readonly bytes: number }
  | { readonly _tag: "Chunked" }
const none: Body = { _tag: "None" }
const chunkedBody: Body = { _tag: "Chunked" }

const requestLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([!-~]+) HTTP\/(\d\.\d)$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** What no line has in it, its end apart; in one look at the whole head. */
const controls = /[^\t\r\n -~\u0080-\u00ff]|\r(?:[^\n]|$)|[^\r]\n/
/** A field's name and its colon, from where it is to begin. */
const nameAndColon = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+:/y
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
const absoluteForm = /^(https?):\/\/([^/?#]*)/i
const defaultPort = { http: /:80$/, https: /:443$/ } as const

/** The upgrades that may pass: a WebSocket to an agent, a link to the edge itself. */
const upgrades = /^(?:websocket|idt\/\d+)$/i
/** Framing that `Connection` must not name. */
const framing = new Set(["content-length", "transfer-encoding", "host"])
/** Set by us, or of the connection that the client made with us: they go no further. */
const ours = new Set([
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "forwarded",
  "x-real-ip",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "te",
  "upgrade",
])
/** What a trailer must not say (RFC 9110 section 6.5.1): framing, routing, who asks, and what is ours. */
const notInTrailers = new Set([
  ...ours,
  ...framing,
  "connection",
  "trailer",
  "authorization",
  "cookie",
  "set-cookie",
  "content-encoding",
  "content-range",
  "content-type",
  "expect",
  "max-forwards",
])
const isOurs = (key: string) => ours.has(key) || key.startsWith("svc-tunnel-")

/** The names that are looked at one by one; `ours` are dropped, and `other` fields go on as they are. */
type Kind =
  | "host"
  | "content-length"
  | "transfer-encoding"
  | "authorization"
  | "connection"
  | "upgrade"
  | "ours"
  | "other"
const special = new Set<string>([
  "host",
  "content-length",
  "transfer-encoding",
  "authorization",
  "connection",
  "upgrade",
])
const isSpecial = (key: string): key is Kind => special.has(key)
const kindOf = (key: string): Kind => (isSpecial(key) ? key : isOurs(key) ? "ours" : "other")

/** What names are, as they were spelled: a client sends the same ones over and over. */
const spelled = new Map<string, Kind>()
const spelledAtMost = 1_000
const kindOfName = (name: string): Kind => {
  const known = spelled.get(name)
  if (known !== undefined) return known
  const kind = kindOf(name.toLowerCase())
  if (spelled.size < spelledAtMost) spelled.set(name, kind)
  return kind
}

/** Whether a line of a trailer goes on; one that is malformed is refused. */
export const passesTrailer = (line: string): boolean => {
  const colon = line.indexOf(":")
  if (colon <= 0 || !token.test(line.slice(0, colon)) || controls.test(line)) {
    throw new Refusal(400, "a malformed trailer")
  }
  const key = line.slice(0, colon).toLowerCase()
  return !notInTrailers.has(key) && !isOurs(key)
}

/** Without port and the root's dot, lower case. */
export const hostOf = (value: string) => value.toLowerCase().replace(/\.?(?::\d+)?$/, "")

/** The host that was judged last: requests of one come in rows. */
let lastHost = { sent: "", host: "" }

/** A field's value begins and ends with something. */
const trimmed = (text: string, from: number, to: number): string => {
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}
const isBlank = (code: number) => code === 0x20 || code === 0x09

export class Head {
  readonly method: string
  readonly target: string
  /** As {@link hostOf}. */
  readonly host: string
  /** As sent. */
  readonly sentHost: string
  /** A change of protocol is asked for, to one that may pass. */
  readonly upgrade: boolean
  /** The connection is to end behind the answer. */
  readonly close: boolean
  readonly authorization: string | undefined
  /** The request line as sent. */
  readonly line: string
  /** The other fields that go on, as sent. */
  readonly rest: string
  private readonly text: string
  private all: Map<string, string> | undefined

  constructor(fields: Omit<Head, "headers">, text: string) {
    this.method = fields.method
    this.target = fields.target
    this.host = fields.host
    this.sentHost = fields.sentHost
    this.upgrade = fields.upgrade
    this.close = fields.close
    this.authorization = fields.authorization
    this.line = fields.line
    this.rest = fields.rest
    this.text = text
  }

  /** Every field by its name in lower case. Few are ever asked for one, so they are gathered then. */
  get headers(): ReadonlyMap<string, string> {
    if (this.all !== undefined) return this.all
    this.all = new Map()
    for (const line of this.text.split("\r\n").slice(1)) {
      const colon = line.indexOf(":")
      const key = line.slice(0, colon).toLowerCase()
      const value = trimmed(line, colon + 1, line.length)
      const before = this.all.get(key)
      this.all.set(key, before === undefined ? value : `${before}, ${value}`)
    }
    return this.all
  }
}

/** What is said of a request to the agent. */
export interface Forwarded {
  readonly client: string
  readonly proto: "http" | "https"
  /** What `Host` becomes; as sent where it is undefined. */
  readonly host: string | undefined
  /** `Authorization` was for the edge and goes no further. */
  readonly ownAuthorization: boolean
  /** The agent is leaving: its answer is to be the connection's last. */
  readonly isLast: boolean
}

/** The head as it goes on, with our forwarding fields. */
export const encode = (head: Head, { client, proto, host, ownAuthorization, isLast }: Forwarded): Buffer => {
  const connection = head.upgrade
    ? "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    : head.close || isLast
      ? "Connection: close\r\n"
      : ""
  const authorization =
    head.authorization === undefined || ownAuthorization ? "" : `Authorization: ${head.authorization}\r\n`
  return Buffer.from(
    `${head.line}\r\nHost: ${host ?? head.sentHost}\r\n${connection}${authorization}${head.rest}X-Forwarded-For: ${client}\r\nX-Forwarded-Proto: ${proto}\r\nX-Forwarded-Host: ${head.sentHost}\r\n\r\n`,
    "latin1",
  )
}

const isHostOf = (target: RegExpExecArray, host: string) => {
  const port = defaultPort[target[1]!.toLowerCase() === "https" ? "https" : "http"]
  const plain = (authority: string) =>
    authority
      .toLowerCase()
      .replace(port, "")
      .replace(/\.(?=:\d+$|$)/, "")
  return plain(target[2]!) === plain(host)
}

/** Judges one head (without its final blank line). Throws {@link Refusal}. */
export const judge = (text: string): { readonly head: Head; readonly body: Body } => {
  if (controls.test(text)) throw new Refusal(400, "control characters in the head")
  let end = text.indexOf("\r\n")
  if (end < 0) end = text.length
  const line = text.slice(0, end)
  const parts = requestLine.exec(line)
  if (parts === null) throw new Refusal(400, "a malformed request line")
  const method = parts[1]!
  const target = parts[2]!
  if (parts[3] !== "1.1") throw new Refusal(505, "only HTTP/1.1")

  let length: number | undefined
  let chunked = false
  let host: string | undefined
  let authorization: string | undefined
  let asksUpgrade = false
  let close = false
  let upgrade: string | undefined
  let named: Set<string> | undefined
  /** Lines that go on are taken in runs: where the present one began. */
  let run = end + 2
  let rest = ""
  let count = 0
  for (let at = end + 2; at < text.length; at = end + 2) {
    end = text.indexOf("\r\n", at)
    if (end < 0) end = text.length
    if (++count > limits.headers) throw new Refusal(431, "too many header fields")
    nameAndColon.lastIndex = at
    if (!nameAndColon.test(text)) throw new Refusal(400, "a malformed header field")
    const colon = nameAndColon.lastIndex - 1
    switch (kindOfName(text.slice(at, colon))) {
      case "other":
        continue
      case "ours":
        break
      case "host":
        if (host !== undefined) throw new Refusal(400, "Host is not exactly one host")
        host = trimmed(text, colon + 1, end)
        if (host === lastHost.sent) break
        if (!hostForm.test(host)) throw new Refusal(400, "Host is not exactly one host")
        lastHost = { sent: host, host: hostOf(host) }
        break
      case "content-length": {
        const value = trimmed(text, colon + 1, end)
        if (length !== undefined || !/^\d{1,15}$/.test(value)) throw new Refusal(400, "a malformed Content-Length")
        length = Number(value)
        continue
      }
      case "transfer-encoding":
        if (chunked || trimmed(text, colon + 1, end).toLowerCase() !== "chunked")
          throw new Refusal(400, "a Transfer-Encoding other than chunked")
        chunked = true
        continue
      case "authorization": {
        const value = trimmed(text, colon + 1, end)
        authorization = authorization === undefined ? value : `${authorization}, ${value}`
        break
      }
      case "connection":
        for (const one of trimmed(text, colon + 1, end)
          .toLowerCase()
          .split(",")) {
          const option = one.trim()
          if (option === "upgrade") asksUpgrade = true
          else if (option === "close") close = true
          else if (framing.has(option)) throw new Refusal(400, "Connection names a framing field")
          else if (option !== "keep-alive" && option !== "") (named ??= new Set()).add(option)
        }
        break
      case "upgrade":
        upgrade = upgrade === undefined ? trimmed(text, colon + 1, end) : ""
        break
    }
    // This line goes on in another way, or not at all.
    if (run < at) rest += text.slice(run, at)
    run = end + 2
  }
  if (run < text.length) rest += `${text.slice(run)}\r\n`
  if (named !== undefined) {
    rest = without(rest, named)
    if (named.has("authorization")) authorization = undefined
  }
  if (host === undefined) throw new Refusal(400, "no Host")
  if (chunked && length !== undefined) throw new Refusal(400, "Content-Length with Transfer-Encoding")
  // Another protocol that is asked for may be passed over (RFC 9110 section 7.8).
  const changesProtocol = asksUpgrade && upgrade !== undefined && upgrades.test(upgrade)
  if (changesProtocol && (chunked || (length ?? 0) > 0)) throw new Refusal(400, "an upgrade with a body")
  if (!target.startsWith("/")) {
    const absolute = absoluteForm.exec(target)
    if (absolute === null && !(target === "*" && method === "OPTIONS")) {
      throw new Refusal(400, "a target that is no path")
    }
    if (absolute !== null && !isHostOf(absolute, host)) throw new Refusal(400, "Host is not that of the target")
  }
  return {
    head: new Head(
      {
        method,
        target,
        host: host === lastHost.sent ? lastHost.host : hostOf(host),
        sentHost: host,
        upgrade: changesProtocol,
        close,
        authorization,
        line,
        rest,
      },
      text,
    ),
    body: chunked ? chunkedBody : (length ?? 0) > 0 ? { _tag: "Length", bytes: length! } : none,
  }
}

/** The lines but those of these names. */
const without = (lines: string, names: ReadonlySet<string>): string =>
  lines
    .split("\r\n")
    .filter((line) => line !== "" && !names.has(line.slice(0, line.indexOf(":")).toLowerCase()))
    .map((line) => `${line}\r\n`)
    .join("")
