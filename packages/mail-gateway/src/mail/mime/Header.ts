/**
 * The only parser of header fields. Authentication and display use the same rows, so no spelling of a field is
 * interpreted in two ways. A line starts a field only if it looks like one (RFC 5322 section 3.6.8); any other line
 * belongs to the field above it. Works on offsets without copies, in linear time.
 */

/** Larger headers are refused, since no sender needs them and every reader pays for them. */
export const limits = { bytes: 256 * 1024, lines: 2_000 }

export interface Row {
  /** The name in lower case; empty if the row has none. */
  readonly key: string
  /** The offsets of the field, including its line break. */
  readonly start: number
  readonly end: number
  /** The offset of the value. */
  readonly value: number
}

export interface Block {
  readonly rows: ReadonlyArray<Row>
  /** The offset of the body, after the blank line. */
  readonly bodyStart: number
  /** The number of physical lines read. */
  readonly lines: number
}

const CR = 13
const LF = 10
const SPACE = 32
const TAB = 9
const COLON = 58

/** Returns the offset after the line feed of the line that starts at `from`. */
export const lineEnd = (raw: Buffer, from: number, end: number): number => {
  const at = raw.indexOf(LF, from)
  return at < 0 || at >= end ? end : at + 1
}

const isBlank = (raw: Buffer, from: number, to: number): boolean =>
  to === from || raw[from] === LF || (raw[from] === CR && (to === from + 1 || raw[from + 1] === LF))

const afterSpace = (raw: Buffer, from: number, to: number): number => {
  let at = from
  while (at < to && (raw[at] === SPACE || raw[at] === TAB)) at++
  return at
}

/**
 * Returns the offset of the colon of the field that starts at `from`, or -1. The colon may be on the following line.
 */
const colonOf = (raw: Buffer, from: number, to: number, end: number): number => {
  let at = from
  while (at < to && raw[at]! > SPACE && raw[at]! < 127 && raw[at] !== COLON) at++
  if (at === from) return -1
  at = afterSpace(raw, at, to)
  if (raw[at] === COLON && at < to) return at
  if (at >= to || (raw[at] !== CR && raw[at] !== LF)) return -1
  const next = afterSpace(raw, to, end)
  return next < end && raw[next] === COLON ? next : -1
}

const SEMICOLON = 59

/** Returns whether the line at `at` is an unfolded parameter: it follows a semicolon and has a name. */
const isParameter = (raw: Buffer, at: number, next: number): boolean => {
  let before = at - 1
  while (before > 0 && raw[before]! <= SPACE) before--
  return raw[before] === SEMICOLON && /^[\w*-]{1,30}=\S/.test(raw.toString("latin1", at, Math.min(next, at + 40)))
}

/**
 * Returns whether the line at `at` can be part of a header: it starts a field, continues one, folded or not, or is the
 * `From` line of mbox.
 */
export const belongs = (raw: Buffer, at: number, next: number): boolean =>
  raw[at] === SPACE ||
  raw[at] === TAB ||
  colonOf(raw, at, next, raw.length) >= 0 ||
  isParameter(raw, at, next) ||
  /^>?From /.test(raw.toString("latin1", at, Math.min(next, at + 6)))

/** Reads the rows up to the blank line. Rows beyond the limits are omitted, but the blank line is still found. */
export const read = (
  raw: Buffer,
  start: number,
  end: number,
  stop?: (line: number, next: number) => boolean,
): Block => {
  const rows: Array<Row> = []
  let open: { key: string; start: number; value: number } | undefined
  let at = start
  let lines = 0
  const close = (to: number) => {
    if (open !== undefined) rows.push({ ...open, end: to })
    open = undefined
  }
  while (at < end) {
    const next = lineEnd(raw, at, end)
    if (isBlank(raw, at, next)) {
      close(at)
      return { rows, bodyStart: next, lines: lines + 1 }
    }
    if (stop?.(at, next) === true) break
    lines++
    if (lines > limits.lines || at - start > limits.bytes) {
      close(at)
      const blank = stop === undefined ? blankLine(raw, at, end) : undefined
      if (blank !== undefined) return { rows, bodyStart: blank, lines }
    } else {
      const colon = colonOf(raw, at, next, end)
      if (colon >= 0) {
        close(at)
        open = { key: raw.toString("latin1", at, colon).trim().toLowerCase(), start: at, value: colon + 1 }
      } else open ??= { key: "", start: at, value: at }
    }
    at = next
  }
  close(at)
  return { rows, bodyStart: at, lines }
}

/** Returns the offset after the first blank line from `from`, which is the start of a line. */
const blankLine = (raw: Buffer, from: number, end: number): number => {
  const crlf = raw.indexOf("\r\n\r\n", from)
  return crlf < 0 || crlf >= end ? end : crlf + 4
}

/** Returns whether a message's header is within the limits. Checked before any other parsing. */
export const isModest = (raw: Buffer): boolean => {
  let at = 0
  for (let lines = 0; lines <= limits.lines; lines++) {
    if (at > limits.bytes) return false
    if (at >= raw.length) return true
    const next = lineEnd(raw, at, raw.length)
    if (isBlank(raw, at, next)) return true
    at = next
  }
  return false
}

/** Decodes UTF-8 (RFC 6532) if valid, otherwise byte by byte. */
const text = (bytes: Buffer): string => {
  const decoded = bytes.toString("utf8")
  return decoded.includes("\ufffd") ? bytes.toString("latin1") : decoded
}

/** Returns a row's unfolded value. */
export const valueOf = (raw: Buffer, row: Row): string =>
  text(raw.subarray(row.value, row.end)).replace(/\r?\n/g, "").trim()

/** Returns a row's name as written. */
export const nameOf = (raw: Buffer, row: Row): string =>
  row.key === ""
    ? ""
    : raw
        .toString("latin1", row.start, row.value - 1)
        .replace(/\r?\n/g, "")
        .trim()

/**
 * Returns the value of a field. If a field is repeated, the last one counts, which signatures cover (RFC 6376
 * section 5.4.2).
 */
export const header = (raw: Buffer, rows: ReadonlyArray<Row>, name: string): string | undefined => {
  const row = rows.findLast(({ key }) => key === name)
  return row === undefined ? undefined : valueOf(raw, row)
}
