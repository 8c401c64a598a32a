/**
 * Cuts what a client sends into commands: lines, and the literals that lines announce at their end (RFC 9051 section 4.3).
 * Bytes in any portions, the same commands out. What a client has sent of a command is bounded; what goes past the bound
 * is read and forgotten, so that the commands after it are understood, unless it goes on and on.
 */

/** What a command may hold; a session that knows who speaks allows more. */
export interface Limits {
  /** Bytes of a command without its literals. */
  readonly commandBytes: number
  /** Literals in a command. */
  readonly literals: number
  /** Bytes of a literal, given what the command began with; 0 takes none. */
  readonly literalBytes: (start: string) => number
  /** A literal with more is not held: it is given out as it comes ({@link Frame}). */
  readonly heldBytes: number
  /** Bytes of the lines of a command that is too large, and of a literal of it, that are read all the same. */
  readonly passedBytes: number
  readonly passedLiteralBytes: number
}

/** A command's text up to a literal or its end, one character a byte. */
export interface Segment {
  readonly text: string
  /** The literal that follows. */
  readonly literal?: {
    /** None of a literal that was given out as it came, which is `aside`. */
    readonly bytes: Buffer
    readonly binary: boolean
    readonly aside: boolean
  }
}

export type Frame =
  | { readonly _tag: "Command"; readonly segments: ReadonlyArray<Segment> }
  /** Bytes of a literal of `of` bytes that is not held. They are of the portion that was read, and gone with it. */
  | { readonly _tag: "Portion"; readonly bytes: Buffer; readonly of: number; readonly begins: boolean }
  /** The client waits for our word before it sends a literal (section 7.6). */
  | { readonly _tag: "Continue" }
  /** A command that is too large; `start` is what it began with. */
  | { readonly _tag: "Refused"; readonly start: string; readonly reason: "line" | "literal" }
  /** A command that is too large and does not end: nothing after it will be understood. */
  | { readonly _tag: "Endless" }
  /** One line that is no command: an answer to a challenge, or DONE. */
  | { readonly _tag: "Line"; readonly text: string }

const LF = 10
/** Of a line that is passed over only its end is looked at: it may announce a literal. */
const tailBytes = 40

const announced = /(~?)\{(\d{1,15})(\+?)\}$/

/** Bytes as they come, in one place that grows: however small the portions are, they cost what they hold. */
class Gathered {
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
  /** Bytes of its lines that were passed over. */
  passed: number
}

interface Literal {
  readonly text: string
  readonly binary: boolean
  readonly size: number
  readonly isHeld: boolean
  /** Bytes that were given out. */
  given: number
}

export class Framing {
  /** The next line is an answer, not a command. */
  expectsLine = false
  readonly #limits: () => Limits
  readonly #line = new Gathered()
  readonly #content = new Gathered()
  #segments: Array<Segment> = []
  #textBytes = 0
  #literal: Literal | undefined
  /** Of a refused command: what it began with; lines are passed over until it ends. */
  #refused: Refused | undefined
  /** Bytes of a literal that nobody wants. */
  #unwanted = 0

  constructor(limits: () => Limits) {
    this.#limits = limits
  }

  /** Whether a command was begun and is not complete. */
  get isUnfinished(): boolean {
    return (
      this.#segments.length > 0 || this.#line.length > 0 || this.#literal !== undefined || this.#refused !== undefined
    )
  }

  /**
   * Reads on from `at` in the portion until a frame is complete; answers it and where to read on. What comes after a frame
   * is read only when the frame was dealt with: it may have changed what the bytes mean.
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
    if (size === 0) this.#endLiteral(this.#literal)
    return waits ? { _tag: "Continue" } : undefined
  }

  /** A line of a refused command has ended; a literal that it announces and nobody has to ask for belongs to it. */
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
