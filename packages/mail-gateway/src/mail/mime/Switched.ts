/**
 * Text whose bytes stand for other characters after each escape sequence: ISO-2022 of Japan, Korea and China (RFC 1468,
 * RFC 1554, RFC 1557, RFC 1922) and HZ (RFC 1843). Every set in them is two bytes of seven bits a character and is known to
 * some decoder with the high bits set. Its characters are read out of that once, so that text costs the same however often
 * it switches.
 */
import iconv from "iconv-lite"

/** Bytes of a set begin at `!`; there are 94 of them in a row and 94 rows. */
const first = 0x21
const rowLength = 94
const unknown = "\ufffd"

interface TwoBytes {
  readonly name: "jisx0208" | "jisx0212" | "gb2312" | "ksx1001"
}

const decoders: Readonly<Record<TwoBytes["name"], (bytes: Buffer) => string>> = {
  jisx0208: (bytes) => new TextDecoder("euc-jp").decode(bytes),
  jisx0212: (bytes) => new TextDecoder("euc-jp").decode(bytes),
  gb2312: (bytes) => new TextDecoder("gbk").decode(bytes),
  ksx1001: (bytes) => iconv.decode(bytes, "cp949"),
}

/** What stands before each character of a set in the encoding that its decoder reads. */
const shifts: Partial<Record<TwoBytes["name"], number>> = { jisx0212: 0x8f }

const tables = new Map<TwoBytes["name"], ReadonlyArray<string>>()

const tableOf = (name: TwoBytes["name"]): ReadonlyArray<string> => {
  const known = tables.get(name)
  if (known !== undefined) return known
  const shift = shifts[name]
  const bytes: Array<number> = []
  for (let row = 0; row < rowLength; row++) {
    for (let cell = 0; cell < rowLength; cell++) {
      if (shift !== undefined) bytes.push(shift)
      bytes.push(0x80 | (first + row), 0x80 | (first + cell), 10)
    }
  }
  const table = decoders[name](Buffer.from(bytes))
    .split("\n")
    .map((character) => (character.includes(unknown) ? unknown : character))
  tables.set(name, table)
  return table
}

/** One byte a character: what differs from ASCII. */
const roman: Readonly<Record<string, string>> = { "\\": "¥", "~": "‾" }

type Set = "ascii" | "roman" | "kana" | TwoBytes["name"]

/** What follows ESC, and the set it switches to. JIS X 0213 begins with the characters of JIS X 0208. */
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

/** Sets that are not switched to at once, but by the bytes SO and SI after it. */
const shifted: Readonly<Record<string, Set>> = { "$)C": "ksx1001", "$)A": "gb2312" }

const ESC = 0x1b
const SO = 0x0e
const SI = 0x0f

/** What follows ESC at `at`, where it is one of those that are known. */
const sequence = (text: string, at: number): { readonly length: number; readonly to?: Set; readonly aside?: Set } => {
  for (const length of [2, 3]) {
    const key = text.slice(at + 1, at + 1 + length)
    if (Object.hasOwn(switches, key)) return { length: length + 1, to: switches[key]! }
    if (Object.hasOwn(shifted, key)) return { length: length + 1, aside: shifted[key]! }
  }
  return { length: 1 }
}

/** The character of `set` that begins at `at`, and how many bytes it has. */
const character = (text: string, at: number, set: Set): readonly [text: string, bytes: number] => {
  const one = text[at]!
  const code = text.charCodeAt(at)
  if (set === "ascii" || code < first || code > 0x7e) return [code < 0x80 ? one : unknown, 1]
  if (set === "roman") return [roman[one] ?? one, 1]
  if (set === "kana") return [code < 0x60 ? String.fromCharCode(0xff40 + code) : unknown, 1]
  const next = at + 1 < text.length ? text.charCodeAt(at + 1) : 0
  if (next < first || next > 0x7e) return [unknown, 1]
  return [tableOf(set)[(code - first) * rowLength + next - first] ?? unknown, 2]
}

/** A line begins in ASCII, whatever the one before ended in. */
export const iso2022 = (bytes: Uint8Array): string => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
  let out = ""
  let set: Set = "ascii"
  let aside: Set = "ksx1001"
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === ESC) {
      const found = sequence(text, at)
      set = found.to ?? set
      aside = found.aside ?? aside
      at += found.length
    } else if (code === SO || code === SI) {
      set = code === SO ? aside : "ascii"
      at++
    } else {
      if (code === 10) set = "ascii"
      const [read, size] = character(text, at, set)
      out += read
      at += size
    }
  }
  return out
}

/** `~{` and `~}` switch, `~~` is a tilde, and one before a line break joins the lines. */
export const hz = (bytes: Uint8Array): string => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
  let out = ""
  let set: Set = "ascii"
  for (let at = 0; at < text.length;) {
    const pair = text.slice(at, at + 2)
    if (set === "ascii" && (pair === "~{" || pair === "~~" || pair === "~\n" || pair === "~\r")) {
      if (pair === "~{") set = "gb2312"
      else if (pair === "~~") out += "~"
      at += text.startsWith("~\r\n", at) ? 3 : 2
    } else if (pair === "~}") {
      set = "ascii"
      at += 2
    } else {
      if (pair[0] === "\n") set = "ascii"
      const [read, size] = character(text, at, set)
      out += read
      at += size
    }
  }
  return out
}
