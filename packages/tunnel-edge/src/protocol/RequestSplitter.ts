/**
 * Splits the bytes of one connection into requests, from chunks of any size. Heads are validated ({@link judge}),
 * bodies are framed, and body bytes pass unchanged.
 */
import { type Head, judge, limits, passesTrailer, Refusal } from "./RequestHead.ts"

type State = "head" | "length" | "chunk-line" | "chunk" | "chunk-end" | "trailers" | "upgrading" | "opaque"

const blankLine = Buffer.from("\r\n\r\n")
const carriageReturn = 13
const lineFeed = 10
const chunkLine = /^([0-9a-fA-F]{1,8})\r$/

/** Passes each head to `onHead` and all other bytes to `out`. Throws {@link Refusal}. */
export class RequestSplitter {
  private state: State = "head"
  private left = 0
  private kept: Buffer = Buffer.alloc(0)
  private host: string | undefined
  private requests = 0
  private trailerBytes = 0
  private emptyLines = 0
  private held = false
  private readonly onHead: (head: Head) => void
  private readonly out: (bytes: Buffer) => void

  constructor(onHead: (head: Head) => void, out: (bytes: Buffer) => void) {
    this.onHead = onHead
    this.out = out
  }

  /** Continues after the response to an upgrade: raw bytes if it was accepted, further requests otherwise. */
  upgraded(accepted: boolean): void {
    if (this.state !== "upgrading") return
    this.state = accepted ? "opaque" : "head"
    const kept = this.kept
    this.kept = Buffer.alloc(0)
    if (kept.length > 0) this.feed(kept)
  }

  /** Whether no byte of a further request was forwarded, so that a refusal concerns only the next request. */
  get isBetween(): boolean {
    return this.state === "head"
  }

  /** Buffers the bytes after the current head until {@link release}. */
  hold(): void {
    this.held = true
  }

  release(): void {
    this.held = false
    const kept = this.rest()
    if (kept.length > 0) this.feed(kept)
  }

  /** Takes the buffered bytes. */
  rest(): Buffer {
    const kept = this.kept
    this.kept = Buffer.alloc(0)
    return kept
  }

  feed(input: Buffer): void {
    const chunk = this.kept.length === 0 ? input : Buffer.concat([this.kept, input])
    if (this.kept.length > 0) this.kept = Buffer.alloc(0)
    let at = 0
    while (at < chunk.length) {
      if (this.held) return this.keep(chunk.subarray(at))
      switch (this.state) {
        case "head": {
          // Empty lines before a request are ignored (RFC 9112 section 2.2).
          if (chunk[at] === carriageReturn) {
            if (at + 1 === chunk.length) return this.keep(chunk.subarray(at))
            if (chunk[at + 1] !== lineFeed || ++this.emptyLines > limits.emptyLines) {
              throw new Refusal(400, "a malformed request line")
            }
            at += 2
            break
          }
          const end = chunk.indexOf(blankLine, at)
          if (end < 0 ? chunk.length - at > limits.headBytes : end - at > limits.headBytes) {
            throw new Refusal(431, "the head is too large")
          }
          if (end < 0) return this.keep(chunk.subarray(at))
          this.emptyLines = 0
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
          if (this.left === 0) this.state = this.state === "length" ? "head" : "chunk-end"
          break
        }
        case "chunk-end":
          if (chunk.length - at < 2) return this.keep(chunk.subarray(at))
          if (chunk[at] !== carriageReturn || chunk[at + 1] !== lineFeed) {
            throw new Refusal(400, "a chunk that does not end where it says")
          }
          this.out(chunk.subarray(at, at + 2))
          at += 2
          this.state = "chunk-line"
          break
        case "chunk-line": {
          const end = chunk.indexOf(lineFeed, at)
          if (end < 0) {
            if (chunk.length - at > limits.chunkLine) throw new Refusal(400, "a malformed chunk")
            return this.keep(chunk.subarray(at))
          }
          const size = chunkLine.exec(chunk.toString("latin1", at, end))?.[1]
          if (size === undefined) throw new Refusal(400, "a malformed chunk")
          this.out(chunk.subarray(at, end + 1))
          at = end + 1
          this.left = parseInt(size, 16)
          this.state = this.left === 0 ? "trailers" : "chunk"
          this.trailerBytes = 0
          break
        }
        case "trailers": {
          const end = chunk.indexOf(lineFeed, at)
          if ((end < 0 ? chunk.length : end) - at + this.trailerBytes > limits.headBytes) {
            throw new Refusal(431, "the trailers are too large")
          }
          if (end < 0) return this.keep(chunk.subarray(at))
          this.trailerBytes += end - at
          const line = chunk.toString("latin1", at, end)
          if (!line.endsWith("\r")) throw new Refusal(400, "a malformed trailer")
          if (line === "\r" || passesTrailer(line.slice(0, -1))) this.out(chunk.subarray(at, end + 1))
          at = end + 1
          if (line === "\r") this.state = "head"
          break
        }
        case "upgrading":
          if (chunk.length - at > limits.headBytes) throw new Refusal(400, "data before the upgrade was accepted")
          return this.keep(chunk.subarray(at))
        case "opaque":
          return this.out(chunk)
      }
    }
  }

  private keep(bytes: Buffer): void {
    this.kept = Buffer.from(bytes)
  }

  private head(text: string): void {
    const { head, body } = judge(text)
    if (this.host !== undefined && this.host !== head.host)
      throw new Refusal(421, "another Host on the same connection")
    // Only for the first request is it certain which response belongs to the upgrade.
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
