/**
 * Splits the byte stream of a client into commands: lines, and the literals that lines announce at their end (RFC 9051
 * section 4.3). The result does not depend on how the bytes are chunked. The size of a command is bounded. An oversized
 * command is read and discarded so that later commands are still understood, up to a second limit.
 */

/** Size limits of commands; a logged-in session allows more. */
interface Limits {
  /** Maximum bytes of a command without its literals. */
  readonly commandBytes: number
  /** Maximum number of literals in a command. */
  readonly literals: number
  /** Maximum bytes of a literal, given the start of its command; 0 rejects literals. */
  readonly literalBytes: (start: string) => number
  /** A larger literal is not buffered but streamed ({@link Frame}). */
  readonly heldBytes: number
  /** Bytes of lines and of a literal of an oversized command that are read and discarded. */
  readonly passedBytes: number
  readonly passedLiteralBytes: number
}

/** The text of a command up to a literal or its end, one character per byte. */
export interface Segment {
  readonly text: string
  /** The literal that follows. */
  readonly literal?: {
    /** Empty if the literal was streamed, which is `aside`. */
    readonly bytes: Buffer
    readonly binary: boolean
    readonly aside: boolean
  }
}

export type Frame =
  | { readonly _tag: "Command"; readonly segments: ReadonlyArray<Segment> }
  /** A chunk of a streamed literal of `of` bytes. The bytes are only valid while their input chunk is. */
  | { readonly _tag: "Portion"; readonly bytes: Buffer; readonly of: number; readonly begins: boolean }
  /** The client waits for a continuation request before it sends a literal (section 7.6). */
  | { readonly _tag: "Continue" }
  /** An oversized command; `start` is its beginning. */
  | { readonly _tag: "Refused"; readonly start: string; readonly reason: "line" | "literal" }
  /** An oversized command without an end: later commands cannot be understood. */
  | { readonly _tag: "Endless" }
  /** A line that is not a command: a response to a challenge, or DONE. */
  | { readonly _tag: "Line"; readonly text: string }

const LF = 10
/** The end of a discarded line, which may announce a literal. */
const tailBytes = 40

const announced = /(~?)\{(\d{1,15})(\+?)\}$/

/** A growing buffer, so that small chunks cost no more memory than their bytes. */
class GrowingBuffer {
  #room = Buffer.alloc(0)
  length = 0

  add(piece: Buffer, atMost: number) {
    const needed = this.length + piece.length
    if (needed > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(
        Math.min(Math.max(needed, this.#room.length * 2, 256), Math.max(needed, atMost)),
      )
      this.#room.copy(room, 0, 0, this.length)
      this.#room = room
    }
    piece.copy(this.#room, this.length)
    this.length = needed
  }

  take(): Buffer {
    const bytes = this.#room.subarray(0, this.length)
    this.#room = Buffer.alloc(0)
    this.length = 0
    return bytes
  }
}

interface Refused {
  readonly start: string
  readonly reason: "line" | "literal"
  tail: Buffer
  /** Bytes of discarded lines. */
  passed: number
}

interface Literal {
  readonly text: string
  readonly binary: boolean
  readonly size: number
  readonly isHeld: boolean
  /** Bytes that were passed on. */
  given: number
}

export class Framing {
  /** Whether the next line is a response to the server and not a command. */
  expectsLine = false
  readonly #limits: () => Limits
  readonly #line = new GrowingBuffer()
  readonly #content = new GrowingBuffer()
  #segments: Array<Segment> = []
  #textBytes = 0
  #literal: Literal | undefined
  /** The oversized command whose remaining lines are discarded. */
  #refused: Refused | undefined
  /** Remaining bytes of a literal to discard. */
  #unwanted = 0

  constructor(limits: () => Limits) {
    this.#limits = limits
  }

  /**
   * Reads the chunk from `at` until a frame is complete; returns the frame and where to continue. The rest is only read
   * after the frame was handled, since it may change the meaning of later bytes.
   */
  next(portion: Buffer, at: number): { readonly frame: Frame | undefined; readonly at: number } {
    let from = at
    while (from < portion.length) {
      if (this.#unwanted > 0) {
        const passed = Math.min(this.#unwanted, portion.length - from)
        this.#unwanted -= passed
        from += passed
      } else if (this.#literal !== undefined && !this.#literal.isHeld) {
        const literal = this.#literal
        const bytes = portion.subarray(from, from + literal.size - literal.given)
        const begins = literal.given === 0
        literal.given += bytes.length
        if (literal.given === literal.size) this.#endLiteral(literal)
        return { frame: { _tag: "Portion", bytes, of: literal.size, begins }, at: from + bytes.length }
      } else if (this.#literal !== undefined) {
        const piece = portion.subarray(from, from + this.#literal.size - this.#content.length)
        this.#content.add(piece, this.#literal.size)
        from += piece.length
        if (this.#content.length === this.#literal.size) this.#endLiteral(this.#literal)
      } else {
        const end = portion.indexOf(LF, from)
        const piece = portion.subarray(from, end < 0 ? portion.length : end + 1)
        from += piece.length
        const frame = this.#readPiece(piece, end >= 0)
        if (frame !== undefined) return { frame, at: from }
      }
    }
    return { frame: undefined, at: from }
  }

  #endLiteral({ text, binary, isHeld }: Literal) {
    this.#segments.push({ text, literal: { bytes: this.#content.take(), binary, aside: !isHeld } })
    this.#literal = undefined
  }

  #readPiece(piece: Buffer, ends: boolean): Frame | undefined {
    const limits = this.#limits()
    if (this.#refused === undefined && this.#textBytes + this.#line.length + piece.length > limits.commandBytes) {
      const line = this.#line.take()
      const start = this.#segments[0]?.text ?? (line.length > 0 ? line : piece).toString("latin1", 0, 100)
      this.#forget()
      this.#refused = { start, reason: "line", tail: Buffer.from(line.subarray(-tailBytes)), passed: 0 }
    }
    if (this.#refused !== undefined) {
      this.#refused.passed += piece.length
      if (this.#refused.passed > limits.passedBytes) return { _tag: "Endless" }
      this.#refused.tail = Buffer.concat([this.#refused.tail, piece.subarray(-tailBytes)]).subarray(-tailBytes)
      return ends ? this.#endRefused(this.#refused, limits) : undefined
    }
    this.#line.add(piece, limits.commandBytes)
    if (!ends) return undefined
    const text = this.#line
      .take()
      .toString("latin1")
      .replace(/\r?\n$/, "")
    if (this.expectsLine) return { _tag: "Line", text }
    return this.#readLine(text, limits)
  }

  #readLine(text: string, limits: Limits): Frame | undefined {
    const match = announced.exec(text)
    if (match === null) {
      const segments = [...this.#segments, { text }]
      this.#forget()
      return { _tag: "Command", segments }
    }
    const before = text.slice(0, match.index)
    const size = Number(match[2])
    const waits = match[3] === ""
    const start = this.#segments[0]?.text ?? before
    if (this.#segments.length >= limits.literals || size > limits.literalBytes(start)) {
      this.#forget()
      if (waits) return { _tag: "Refused", start, reason: "literal" }
      if (size > limits.passedLiteralBytes) return { _tag: "Endless" }
      this.#unwanted = size
      this.#refused = { start, reason: "literal", tail: Buffer.alloc(0), passed: 0 }
      return undefined
    }
    this.#textBytes += text.length
    const isHeld = size <= limits.heldBytes
    this.#literal = { text: before, binary: match[1] === "~", size, isHeld, given: 0 }
    return waits ? { _tag: "Continue" } : undefined
  }

  /** Handles the end of a discarded line; a non-synchronizing literal that it announces belongs to the command. */
  #endRefused({ start, reason, tail, passed }: Refused, limits: Limits): Frame | undefined {
    const match = announced.exec(tail.toString("latin1").replace(/\r?\n$/, ""))
    if (match?.[3] === "+") {
      this.#unwanted = Number(match[2])
      if (this.#unwanted > limits.passedLiteralBytes) return { _tag: "Endless" }
      this.#refused = { start, reason, tail: Buffer.alloc(0), passed }
      return undefined
    }
    this.#refused = undefined
    return { _tag: "Refused", start, reason }
  }

  #forget() {
    this.#segments = []
    this.#textBytes = 0
  }
}
