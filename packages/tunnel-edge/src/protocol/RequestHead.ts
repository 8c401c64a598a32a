/**
 * What the public edge lets through of a request, strictly (RFC 9112), so that whoever reads behind it reads the same:
 * each head is judged and rewritten, each body framed; bytes in between pass as they are. Stricter than Node's parser.
 */

/** Where a request is refused: the status, and why in words. */
export class Refusal extends Error {
  readonly status: 400 | 421 | 431 | 505
  constructor(status: Refusal["status"], message: string) {
    super(message)
    this.status = status
  }
}

export const limits = { headBytes: 16 * 1024, headers: 100, chunkLine: 18 }

export interface Head {
  readonly method: string
  readonly target: string
  /** As sent, without port, lower case. */
  readonly host: string
  readonly headers: ReadonlyMap<string, string>
  readonly upgrade: boolean
  /** Request line and fields as they go on: lower-case name, whole line. */
  readonly line: string
  readonly fields: ReadonlyArray<readonly [string, string]>
}

const requestLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([!-~]+) HTTP\/(\d)\.(\d)$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// oxlint-disable-next-line no-control-regex -- they are what is refused
const controls = /[\u0000-\u0008\u000a-\u001f\u007f]/
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** Set by us; a client's are dropped, as are fields of the connection it made with us. */
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
])
/** Framing that `Connection` must not name. */
const framing = new Set(["content-length", "transfer-encoding", "host", "upgrade-insecure-requests", "te", "trailer"])

/** What is said of a request to the agent. */
export interface Forwarded {
  readonly client: string
  readonly proto: "http" | "https"
  /** What `Host` becomes; as sent where it is undefined. */
  readonly host: string | undefined
  /** `Authorization` was for the edge and goes no further. */
  readonly ownAuthorization: boolean
}

/** The head as it goes on, with our forwarding fields. */
export const encode = (head: Head, { client, proto, host, ownAuthorization }: Forwarded): Buffer => {
  let text = `${head.line}\r\n`
  let sent = head.host
  for (const [key, line] of head.fields) {
    if (key === "host") sent = line.slice(line.indexOf(":") + 1).trim()
    if (key === "host" && host !== undefined) text += `Host: ${host}\r\n`
    else if (key !== "authorization" || !ownAuthorization) text += `${line}\r\n`
  }
  return Buffer.from(
    `${text}X-Forwarded-For: ${client}\r\nX-Forwarded-Proto: ${proto}\r\nX-Forwarded-Host: ${sent}\r\n\r\n`,
    "latin1",
  )
}

type Body =
  | { readonly _tag: "None" }
  | { readonly _tag: "Length"; readonly bytes: number }
  | { readonly _tag: "Chunked" }

export const hostOf = (value: string) => value.toLowerCase().replace(/:\d+$/, "")

/** Judges one head (without its final blank line). */
export const judge = (text: string): { readonly head: Head; readonly body: Body } => {
  const lines = text.split("\r\n")
  if (lines.some((line) => controls.test(line))) throw new Refusal(400, "control characters in the head")
  const [, method, target, major, minor] = requestLine.exec(lines[0]!) ?? []
  if (method === undefined || target === undefined) throw new Refusal(400, "a malformed request line")
  if (major !== "1" || minor !== "1") throw new Refusal(505, "only HTTP/1.1")
  if (lines.length - 1 > limits.headers) throw new Refusal(431, "too many header fields")
  const headers = new Map<string, string>()
  const kept: Array<readonly [string, string]> = []
  let length: number | undefined
  let chunked = false
  let host: string | undefined
  let upgrade = false
  const dropped = new Set<string>()
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(":")
    const name = line.slice(0, colon)
    if (colon <= 0 || !token.test(name)) throw new Refusal(400, "a malformed header field")
    const key = name.toLowerCase()
    const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "")
    switch (key) {
      case "host":
        if (host !== undefined || !hostForm.test(value)) throw new Refusal(400, "Host is not exactly one host")
        host = value
        break
      case "content-length":
        if (length !== undefined || !/^\d{1,15}$/.test(value)) throw new Refusal(400, "a malformed Content-Length")
        length = Number(value)
        break
      case "transfer-encoding":
        if (chunked || value.toLowerCase() !== "chunked")
          throw new Refusal(400, "a Transfer-Encoding other than chunked")
        chunked = true
        break
      case "connection":
        for (const option of value
          .toLowerCase()
          .split(",")
          .map((one) => one.trim())) {
          if (option === "upgrade") upgrade = true
          else if (framing.has(option)) throw new Refusal(400, "Connection names a framing field")
          else if (option !== "close" && option !== "keep-alive" && option !== "") dropped.add(option)
        }
        break
    }
    if (ours.has(key) || key.startsWith("svc-tunnel-")) {
      headers.set(key, value)
      continue
    }
    headers.set(key, headers.has(key) ? `${headers.get(key)}, ${value}` : value)
    kept.push([key, line])
  }
  if (host === undefined) throw new Refusal(400, "no Host")
  if (chunked && length !== undefined) throw new Refusal(400, "Content-Length with Transfer-Encoding")
  if (upgrade && (chunked || (length ?? 0) > 0)) throw new Refusal(400, "an upgrade with a body")
  const absolute = /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]
  if (absolute !== undefined && absolute.toLowerCase() !== host.toLowerCase())
    throw new Refusal(400, "Host is not that of the target")
  if (!target.startsWith("/") && absolute === undefined && !(target === "*" && method === "OPTIONS")) {
    throw new Refusal(400, "a target that is no path")
  }
  const fields = dropped.size === 0 ? kept : kept.filter(([key]) => !dropped.has(key))
  return {
    head: { method, target, host: hostOf(host), headers, upgrade, line: lines[0]!, fields },
    body: chunked ? { _tag: "Chunked" } : (length ?? 0) > 0 ? { _tag: "Length", bytes: length! } : { _tag: "None" },
  }
}

type State = "head" | "length" | "chunk-line" | "chunk" | "trailers" | "upgrading" | "opaque"

const blankLine = Buffer.from("\r\n\r\n")
const lineFeed = 10

/**
 * The requests of one connection, in pieces of any size. `onHead` takes each head, `out` everything else that goes on.
 * Throws {@link Refusal}.
 */
export class RequestSplitter {
  private state: State = "head"
  private left = 0
  private kept: Buffer = Buffer.alloc(0)
  private host: string | undefined
  private requests = 0
  private trailerBytes = 0
  private held = false
  private readonly onHead: (head: Head) => void
  private readonly out: (bytes: Buffer) => void

  constructor(onHead: (head: Head) => void, out: (bytes: Buffer) => void) {
    this.onHead = onHead
    this.out = out
  }

  /** The answer to an upgrade is known: bytes pass as they are from here on, or requests go on. */
  upgraded(accepted: boolean): void {
    if (this.state !== "upgrading") return
    this.state = accepted ? "opaque" : "head"
    const kept = this.kept
    this.kept = Buffer.alloc(0)
    if (kept.length > 0) this.feed(kept)
  }

  /** Whether nothing of a further request has gone on: a refusal concerns that one alone. */
  get isBetween(): boolean {
    return this.state === "head"
  }

  /** Keeps what comes behind the present head until {@link release}. */
  hold(): void {
    this.held = true
  }

  release(): void {
    this.held = false
    const kept = this.rest()
    if (kept.length > 0) this.feed(kept)
  }

  /** What came behind a head that is not going on. */
  rest(): Buffer {
    const kept = this.kept
    this.kept = Buffer.alloc(0)
    return kept
  }

  feed(input: Buffer): void {
    if (this.isOpaque() && !this.held) return this.out(input)
    const chunk = this.kept.length === 0 ? input : Buffer.concat([this.kept, input])
    this.kept = Buffer.alloc(0)
    let at = 0
    while (at < chunk.length) {
      if (this.held) return this.keep(chunk.subarray(at))
      switch (this.state) {
        case "head": {
          const end = chunk.indexOf(blankLine, at)
          if (end < 0 ? chunk.length - at > limits.headBytes : end - at > limits.headBytes) {
            throw new Refusal(431, "the head is too large")
          }
          if (end < 0) return this.keep(chunk.subarray(at))
          this.head(chunk.toString("latin1", at, end))
          at = end + blankLine.length
          break
        }
        case "length":
        case "chunk": {
          const taken = Math.min(this.left, chunk.length - at)
          this.out(chunk.subarray(at, at + taken))
          at += taken
          this.left -= taken
          if (this.left === 0) this.state = this.state === "length" ? "head" : "chunk-line"
          break
        }
        case "chunk-line": {
          const end = chunk.indexOf(lineFeed, at)
          if (end < 0) {
            if (chunk.length - at > limits.chunkLine) throw new Refusal(400, "a malformed chunk")
            return this.keep(chunk.subarray(at))
          }
          const size = /^([0-9a-fA-F]{1,8})\r$/.exec(chunk.toString("latin1", at, end))?.[1]
          if (size === undefined) throw new Refusal(400, "a malformed chunk")
          this.out(chunk.subarray(at, end + 1))
          at = end + 1
          const bytes = parseInt(size, 16)
          this.state = bytes === 0 ? "trailers" : "chunk"
          this.left = bytes + 2
          this.trailerBytes = 0
          break
        }
        case "trailers": {
          const end = chunk.indexOf(lineFeed, at)
          this.trailerBytes += (end < 0 ? chunk.length : end) - at
          if (this.trailerBytes > limits.headBytes) throw new Refusal(431, "the trailers are too large")
          if (end < 0) return this.keep(chunk.subarray(at))
          const line = chunk.toString("latin1", at, end)
          if (line !== "\r" && !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r]*\r$/.test(line))
            throw new Refusal(400, "a malformed trailer")
          this.out(chunk.subarray(at, end + 1))
          at = end + 1
          if (line === "\r") this.state = "head"
          break
        }
        case "upgrading":
          if (chunk.length - at > limits.headBytes) throw new Refusal(400, "data before the upgrade was accepted")
          return this.keep(chunk.subarray(at))
        case "opaque":
          return this.out(at === 0 ? chunk : chunk.subarray(at))
      }
    }
  }

  private isOpaque(): boolean {
    return this.state === "opaque"
  }

  private keep(bytes: Buffer): void {
    this.kept = Buffer.from(bytes)
  }

  private head(text: string): void {
    const { head, body } = judge(text)
    if (this.host !== undefined && this.host !== head.host)
      throw new Refusal(421, "another Host on the same connection")
    // Which of several answers belongs to an upgrade is only certain of the first.
    if (head.upgrade && this.requests > 0) throw new Refusal(400, "an upgrade after other requests on its connection")
    this.host = head.host
    this.requests++
    this.onHead(head)
    if (head.upgrade) this.state = "upgrading"
    else if (body._tag === "Chunked") this.state = "chunk-line"
    else if (body._tag === "Length") {
      this.state = "length"
      this.left = body.bytes
    }
  }
}
