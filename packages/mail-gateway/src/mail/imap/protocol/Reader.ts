/**
 * Reads the tokens of a command (RFC 9051 section 9). Invalid input throws {@link Malformed} with what was expected;
 * the parser catches it in one place.
 */
import type { Segment } from "./Framing.ts"

export class Malformed extends Error {}

/** Maximum nesting of lists, and elements per list. */
export const limits = { depth: 20, elements: 2_000 }

const atomChars = /[!#$&'+,./0-9:;<=>?@A-Z[^_`a-z|}~-]+/y
const astringChars = /[!#$&'+,./0-9:;<=>?@A-Z[\]^_`a-z|}~-]+/y
const listChars = /[!#$%&'*+,./0-9:;<=>?@A-Z[\]^_`a-z|}~-]+/y
const tagChars = /[!#$&',./0-9:;<=>?@A-Z[\]^_`a-z|}~-]+/y
const digits = /\d+/y
const quotedText = /"((?:[^"\\\r\n]|\\["\\])*)"/y

export class Reader {
  readonly #segments: ReadonlyArray<Segment>
  #segment = 0
  #at = 0

  constructor(segments: ReadonlyArray<Segment>) {
    this.#segments = segments
  }

  get #text(): string {
    return this.#segments[this.#segment]?.text ?? ""
  }

  /** The next character; empty at the end and before a literal. */
  get peek(): string {
    return this.#text[this.#at] ?? ""
  }

  get isLiteral(): boolean {
    return this.#at >= this.#text.length && this.#segments[this.#segment]?.literal !== undefined
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length && !this.isLiteral
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found !== null) this.#at = pattern.lastIndex
    return found
  }

  /** Consumes the character if it is next. */
  takes(char: string): boolean {
    if (this.peek !== char) return false
    this.#at++
    return true
  }

  /** Whether the text is next, ignoring case. */
  follows(text: string): boolean {
    return this.#text.slice(this.#at, this.#at + text.length).toUpperCase() === text
  }

  expect(char: string): void {
    if (!this.takes(char)) throw new Malformed(`Expected ${char === " " ? "a space" : char}`)
  }

  space(): void {
    this.expect(" ")
    // Some clients send several spaces.
    while (this.takes(" "));
  }

  end(): void {
    while (this.takes(" "));
    if (!this.isDone) throw new Malformed("Expected the end of the command")
  }

  tag(): string {
    const tag = this.#match(tagChars)?.[0]
    if (tag === undefined || tag.length > 200) throw new Malformed("Expected a tag")
    return tag
  }

  /** Reads an atom in upper case, since keywords are case-insensitive. */
  word(): string {
    return this.atom().toUpperCase()
  }

  atom(): string {
    const atom = this.#match(atomChars)?.[0]
    if (atom === undefined) throw new Malformed("Expected an atom")
    return atom
  }

  number(atMost = 0xffff_ffff): number {
    const text = this.#match(digits)?.[0]
    if (text === undefined || text.length > 19) throw new Malformed("Expected a number")
    const value = Number(text)
    if (value > atMost) throw new Malformed("The number is too large")
    return value
  }

  /**
   * Reads a mod-sequence. The protocol allows 63 bits; ours are much smaller, so larger values are clamped to the
   * largest safe integer.
   */
  modseq(): number {
    return Math.min(this.number(Number.MAX_VALUE), Number.MAX_SAFE_INTEGER)
  }

  #literal(): Buffer | undefined {
    if (!this.isLiteral) return undefined
    const { bytes } = this.#segments[this.#segment]!.literal!
    this.#segment++
    this.#at = 0
    return bytes
  }

  /** Reads a literal that may contain any bytes: a message. */
  literal(): NonNullable<Segment["literal"]> {
    const { binary = false, aside = false } = this.#segments[this.#segment]?.literal ?? {}
    const bytes = this.#literal()
    if (bytes === undefined) throw new Malformed("Expected a literal")
    return { bytes, binary, aside }
  }

  get isString(): boolean {
    return this.isLiteral || this.peek === '"'
  }

  string(): Buffer {
    const literal = this.#literal()
    if (literal !== undefined) {
      if (literal.includes(0)) throw new Malformed("NUL in a string")
      return literal
    }
    const quoted = this.#match(quotedText)
    if (quoted === null) throw new Malformed("Expected a string")
    return Buffer.from(quoted[1]!.replace(/\\(["\\])/g, "$1"), "latin1")
  }

  astring(): Buffer {
    if (this.isString) return this.string()
    const atom = this.#match(astringChars)?.[0]
    if (atom === undefined) throw new Malformed("Expected a string")
    return Buffer.from(atom, "latin1")
  }

  nstring(): Buffer | null {
    if (this.isString) return this.string()
    if (this.word() !== "NIL") throw new Malformed("Expected a string or NIL")
    return null
  }

  /** Reads a LIST pattern. */
  pattern(): Buffer {
    if (this.isString) return this.string()
    const text = this.#match(listChars)?.[0]
    if (text === undefined) throw new Malformed("Expected a mailbox pattern")
    return Buffer.from(text, "latin1")
  }

  /** Reads everything up to the next of the characters, or to the end of the text. */
  upTo(stops: RegExp): string {
    const rest = this.#text.slice(this.#at)
    const end = rest.search(stops)
    const text = end < 0 ? rest : rest.slice(0, end)
    this.#at += text.length
    return text
  }

  /** Reads a list `(a b c)`, which may be empty if `atLeast` is 0. */
  list<A>(element: () => A, atLeast = 1): Array<A> {
    this.expect("(")
    const elements: Array<A> = []
    while (this.takes(" "));
    while (!this.takes(")")) {
      if (elements.length >= limits.elements) throw new Malformed("Too many elements in a list")
      elements.push(element())
      if (this.peek !== ")") this.space()
    }
    if (elements.length < atLeast) throw new Malformed("Empty list")
    return elements
  }
}

/** Decodes UTF-8, or Latin-1 if the bytes are not valid UTF-8. */
export const textOf = (bytes: Buffer): string => {
  const text = bytes.toString("utf8")
  return text.includes("\ufffd") ? bytes.toString("latin1") : text
}
