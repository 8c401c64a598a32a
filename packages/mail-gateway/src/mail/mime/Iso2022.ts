/**
 * Decodes text that switches character sets by escape sequences: ISO-2022 of Japan, Korea and China (RFC 1468, RFC
 * 1554, RFC 1557, RFC 1922), and HZ (RFC 1843). Each set has two 7-bit bytes per character and is known to some decoder
 * with the high bits set. Its characters are tabulated once, so the cost does not depend on the number of switches.
 */
import iconv from "iconv-lite"

/** The 94 byte values of a set start at `!`; a set has 94 rows of 94 characters. */
const first = 0x21
const last = 0x7e
const rowLength = last - first + 1
const unknown = 0xfffd

type TwoBytes = "jisx0208" | "jisx0212" | "gb2312" | "ksx1001"
type Set = "ascii" | "roman" | "kana" | TwoBytes

/** The decoder of each set, and the byte that it expects before each character. */
const decoders: Readonly<Record<TwoBytes, { decode: (bytes: Buffer) => string; shift?: number }>> = {
  jisx0208: { decode: (bytes) => new TextDecoder("euc-jp").decode(bytes) },
  jisx0212: { decode: (bytes) => new TextDecoder("euc-jp").decode(bytes), shift: 0x8f },
  gb2312: { decode: (bytes) => new TextDecoder("gbk").decode(bytes) },
  ksx1001: { decode: (bytes) => iconv.decode(bytes, "cp949") },
}

const tables = new Map<TwoBytes, Uint16Array>()

/** Returns the characters of a set, row by row. */
const tableOf = (name: TwoBytes): Uint16Array => {
  const known = tables.get(name)
  if (known !== undefined) return known
  const { decode, shift } = decoders[name]
  const bytes: Array<number> = []
  for (let row = first; row <= last; row++) {
    for (let cell = first; cell <= last; cell++) {
      if (shift !== undefined) bytes.push(shift)
      bytes.push(0x80 | row, 0x80 | cell, 10)
    }
  }
  const characters = decode(Buffer.from(bytes)).split("\n").slice(0, -1)
  const table = Uint16Array.from(characters, (text) => (text.length === 1 ? text.charCodeAt(0) : unknown))
  tables.set(name, table)
  return table
}

/** The set selected by each sequence after ESC. JIS X 0213 starts with the characters of JIS X 0208. */
const switches: Readonly<Record<string, Set>> = {
  "(B": "ascii",
  "(J": "roman",
  "(I": "kana",
  "$@": "jisx0208",
  $B: "jisx0208",
  "$(@": "jisx0208",
  "$(B": "jisx0208",
  "$(O": "jisx0208",
  "$(Q": "jisx0208",
  "$(D": "jisx0212",
  $A: "gb2312",
  "$(A": "gb2312",
  "$(C": "ksx1001",
}

/** Sets that a sequence designates and a following SO selects. */
const shifted: Readonly<Record<string, Set>> = { "$)C": "ksx1001", "$)A": "gb2312" }

const LF = 0x0a
const CR = 0x0d
const SO = 0x0e
const SI = 0x0f
const ESC = 0x1b
const dollar = 0x24
const opening = 0x28
const tilde = 0x7e

interface Sequence {
  /** The length in bytes, including ESC. */
  readonly length: number
  readonly to?: Set
  readonly designated?: Set
}
const none: Sequence = { length: 1 }

/** Returns the known sequence that starts at `at`, or {@link none}. */
const sequence = (bytes: Buffer, at: number): Sequence => {
  if (bytes[at + 1] !== dollar && bytes[at + 1] !== opening) return none
  for (const length of [2, 3]) {
    const key = bytes.toString("latin1", at + 1, at + 1 + length)
    if (Object.hasOwn(switches, key)) return { length: length + 1, to: switches[key]! }
    if (Object.hasOwn(shifted, key)) return { length: length + 1, designated: shifted[key]! }
  }
  return none
}

/** The decoded characters, at most one per byte. */
class Written {
  readonly #units: Uint16Array
  #size = 0
  #set: Set = "ascii"
  #table: Uint16Array | undefined

  constructor(bytes: number) {
    this.#units = new Uint16Array(bytes)
  }

  switch(set: Set): void {
    this.#set = set
    this.#table = set === "ascii" || set === "roman" || set === "kana" ? undefined : tableOf(set)
  }

  get isAscii(): boolean {
    return this.#set === "ascii"
  }

  put(unit: number): void {
    this.#units[this.#size++] = unit
  }

  /** Appends the character at `at` and returns its length in bytes. */
  character(bytes: Buffer, at: number): number {
    const code = bytes[at]!
    if (this.#set === "ascii" || code < first || code > last) {
      this.put(code < 0x80 ? code : unknown)
      return 1
    }
    if (this.#table === undefined) {
      this.put(this.#set === "kana" ? kanaOf(code) : romanOf(code))
      return 1
    }
    const next = bytes[at + 1] ?? 0
    if (next < first || next > last) {
      this.put(unknown)
      return 1
    }
    this.put(this.#table[(code - first) * rowLength + next - first]!)
    return 2
  }

  text(): string {
    return new TextDecoder("utf-16le", { ignoreBOM: true }).decode(this.#units.subarray(0, this.#size))
  }
}

const kanaOf = (code: number) => (code < 0x60 ? 0xff40 + code : unknown)
/** JIS X 0201 has the yen sign instead of the backslash, and an overline instead of the tilde. */
const romanOf = (code: number) => (code === 0x5c ? 0xa5 : code === tilde ? 0x203e : code)

/** Decodes ISO-2022. Every line starts in ASCII. */
export const iso2022 = (bytes: Buffer): string => {
  const written = new Written(bytes.length)
  let designated: Set = "ksx1001"
  for (let at = 0; at < bytes.length;) {
    const code = bytes[at]!
    if (code === ESC) {
      const found = sequence(bytes, at)
      if (found.to !== undefined) written.switch(found.to)
      designated = found.designated ?? designated
      at += found.length
    } else if (code === SO || code === SI) {
      written.switch(code === SO ? designated : "ascii")
      at++
    } else {
      if (code === LF) written.switch("ascii")
      at += written.character(bytes, at)
    }
  }
  return written.text()
}

const isBreak = (bytes: Buffer, at: number) => bytes[at] === LF || (bytes[at] === CR && bytes[at + 1] === LF)

/** Decodes HZ: `~{` and `~}` switch, `~~` is a tilde, and `~` before a line break joins the lines. */
export const hz = (bytes: Buffer): string => {
  const written = new Written(bytes.length)
  for (let at = 0; at < bytes.length;) {
    const code = bytes[at]!
    const next = code === tilde ? bytes[at + 1] : undefined
    if (next === 0x7d) {
      written.switch("ascii")
      at += 2
    } else if (next === 0x7b && written.isAscii) {
      written.switch("gb2312")
      at += 2
    } else if (next === tilde && written.isAscii) {
      written.put(tilde)
      at += 2
    } else if (code === tilde && written.isAscii && isBreak(bytes, at + 1)) {
      at += bytes[at + 1] === LF ? 2 : 3
    } else {
      if (code === LF) written.switch("ascii")
      at += written.character(bytes, at)
    }
  }
  return written.text()
}
