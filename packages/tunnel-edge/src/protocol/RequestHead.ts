/**
 * Validates and rewrites the head of one request at the public edge (RFC 9110, RFC 9112). Validation is stricter than
 * Node's parser, so that every parser behind the edge interprets the head in the same way. The forwarding fields of the
 * client are replaced by the edge's own.
 */

/** A refused request, with its status and reason. */
export class Refusal extends Error {
  readonly status: 400 | 421 | 431 | 505
  constructor(status: Refusal["status"], message: string) {
    super(message)
    this.status = status
  }
}

export const limits = { headBytes: 16 * 1024, headers: 100, chunkLine: 18, emptyLines: 4 }

type Body =
  | { readonly _tag: "None" }
  | { readonly _tag: "Length"; readonly bytes: number }
  | { readonly _tag: "Chunked" }
const none: Body = { _tag: "None" }
const chunkedBody: Body = { _tag: "Chunked" }

const requestLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([!-~]+) HTTP\/(\d\.\d)$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Characters that must not occur in a head, except for line endings. Tested once for the whole head. */
const controls = /[^\t\r\n -~\u0080-\u00ff]|\r(?:[^\n]|$)|[^\r]\n/
/** Matches the name and colon of a field at the current position. */
const nameAndColon = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+:/y
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
const absoluteForm = /^(https?):\/\/([^/?#]*)/i
const defaultPort = { http: /:80$/, https: /:443$/ } as const

/** Upgrades that are allowed: a WebSocket to an agent or a link to the edge. */
const upgrades = /^(?:websocket|idt\/\d+)$/i
/** Framing fields, which `Connection` must not name. */
const framing = new Set(["content-length", "transfer-encoding", "host"])
/** Fields that the edge sets itself or that concern only the client's connection. They are not forwarded. */
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
  // The verified caller.
  "svc-agent",
  "svc-agent-handle",
])
/**
 * Fields that are not allowed in a trailer (RFC 9110 section 6.5.1): framing, routing, authentication and fields of the
 * edge.
 */
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
const isOurs = (name: string) => ours.has(name) || name.startsWith("svc-tunnel-")
/** Returns the name as many servers read it: CGI and WSGI servers do not distinguish underscores from hyphens. */
const hyphenated = (key: string) => key.replaceAll("_", "-")

/** Fields that are handled individually. */
const individual = [
  "host",
  "content-length",
  "transfer-encoding",
  "authorization",
  "connection",
  "upgrade",
  "signature-input",
] as const
/** `ours` are dropped and `other` are forwarded unchanged. */
type Kind = (typeof individual)[number] | "ours" | "other"
const special = new Set<string>(individual)
const isSpecial = (key: string): key is Kind => special.has(key)
const kindOf = (key: string): Kind => (isSpecial(key) ? key : isOurs(hyphenated(key)) ? "ours" : "other")

/** Caches the kind of each spelling of a name, since clients repeat the same names. */
const spelled = new Map<string, Kind>()
const spelledAtMost = 1_000
const kindOfName = (name: string): Kind => {
  const known = spelled.get(name)
  if (known !== undefined) return known
  const kind = kindOf(name.toLowerCase())
  if (spelled.size < spelledAtMost) spelled.set(name, kind)
  return kind
}

/** Returns whether a trailer line is forwarded. Throws {@link Refusal} if it is malformed. */
export const passesTrailer = (line: string): boolean => {
  const colon = line.indexOf(":")
  if (colon <= 0 || !token.test(line.slice(0, colon)) || controls.test(line)) {
    throw new Refusal(400, "a malformed trailer")
  }
  const name = hyphenated(line.slice(0, colon).toLowerCase())
  return !notInTrailers.has(name) && !isOurs(name)
}

/** Returns a host in lower case, without port and trailing dot. */
const hostOf = (value: string) => value.toLowerCase().replace(/\.?(?::\d+)?$/, "")

/** The last validated host, since consecutive requests often have the same host. */
let lastHost = { sent: "", host: "" }

/** Returns a field value without surrounding white space. */
const trimmed = (text: string, from: number, to: number): string => {
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}
const isBlank = (code: number) => code === 0x20 || code === 0x09

export class Head {
  readonly method: string
  readonly target: string
  /** Normalized by {@link hostOf}. */
  readonly host: string
  /** `Host` as sent by the client. */
  readonly sentHost: string
  /** Whether the request asks for an allowed upgrade. */
  readonly upgrade: boolean
  /** Whether the connection ends after the response. */
  readonly close: boolean
  readonly authorization: string | undefined
  /** Whether the request has a signature (RFC 9421). */
  readonly isSigned: boolean
  /** The request line as sent by the client. */
  readonly line: string
  /** The forwarded fields as sent by the client. */
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
    this.isSigned = fields.isSigned
    this.line = fields.line
    this.rest = fields.rest
    this.text = text
  }

  /** All fields by lower-case name. Parsed lazily, because few requests need them. */
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

/** Values for the forwarding fields of a request. */
export interface Forwarded {
  readonly client: string
  readonly proto: "http" | "https"
  /** The `Host` to forward, or undefined to keep the original. */
  readonly host: string | undefined
  /** Whether `Authorization` is meant for the edge and must not be forwarded. */
  readonly ownAuthorization: boolean
  /** Whether the response must close the connection because the agent is shutting down. */
  readonly isLast: boolean
}

/** Returns the bytes of the head to forward, including the edge's forwarding fields and `caller`, lines about the caller. */
export const encode = (
  head: Head,
  { client, proto, host, ownAuthorization, isLast }: Forwarded,
  caller = "",
): Buffer => {
  const connection = head.upgrade
    ? "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    : head.close || isLast
      ? "Connection: close\r\n"
      : ""
  const authorization =
    head.authorization === undefined || ownAuthorization ? "" : `Authorization: ${head.authorization}\r\n`
  return Buffer.from(
    `${head.line}\r\nHost: ${host ?? head.sentHost}\r\n${connection}${authorization}${head.rest}${caller}X-Forwarded-For: ${client}\r\nX-Forwarded-Proto: ${proto}\r\nX-Forwarded-Host: ${head.sentHost}\r\n\r\n`,
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

/** Validates one head, without its final blank line. Throws {@link Refusal}. */
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
  let isSigned = false
  let asksUpgrade = false
  let close = false
  let upgrade: string | undefined
  let named: Set<string> | undefined
  /** Consecutive forwarded lines are copied together; `run` is where the current group starts. */
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
      case "signature-input":
        isSigned = true
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
    // This line is rewritten or dropped.
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
  // A request for another protocol may be ignored (RFC 9110 section 7.8).
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
        host: lastHost.host,
        sentHost: host,
        upgrade: changesProtocol,
        close,
        authorization,
        isSigned,
        line,
        rest,
      },
      text,
    ),
    body: chunked ? chunkedBody : (length ?? 0) > 0 ? { _tag: "Length", bytes: length! } : none,
  }
}

/** Returns the lines without those of the given names. */
const without = (lines: string, names: ReadonlySet<string>): string =>
  lines
    .split("\r\n")
    .filter((line) => line !== "" && !names.has(line.slice(0, line.indexOf(":")).toLowerCase()))
    .map((line) => `${line}\r\n`)
    .join("")
