/**
 * The structure of a message as a tree of parts with byte offsets into the raw message (RFC 2045, RFC 2046). It holds
 * for any bytes: what cannot be split further, or would pass a limit, is one opaque part. No I/O, no exceptions, time
 * linear in the message for each level of nesting.
 */
import libmime from "libmime"

/** Hostile messages nest and split without end; past these a part is left whole. */
export const limits = { depth: 20, parts: 1_000, headerBytes: 256 * 1024, headers: 2_000 }

export interface RawHeader {
  readonly name: string
  /** Unfolded, as received. */
  readonly value: string
}

export interface Part {
  /** Offsets: the header from `start`, the body from `bodyStart` to before `end`. */
  readonly start: number
  readonly bodyStart: number
  readonly end: number
  readonly headers: ReadonlyArray<RawHeader>
  /** Lower case, `text/plain` where absent or unreadable. */
  readonly type: string
  readonly parameters: Readonly<Record<string, string>>
  /** Lower case transfer encoding; `7bit` where absent. */
  readonly encoding: string
  /** Lower case `attachment`, `inline` or empty. */
  readonly disposition: string
  readonly filename: string | null
  /** Of a multipart its parts, of a message/rfc822 the message, else empty. */
  readonly parts: ReadonlyArray<Part>
}

const CR = 13
const LF = 10

/** UTF-8 where it is (RFC 6532), else byte for byte. */
const text = (bytes: Buffer): string => {
  const decoded = bytes.toString("utf8")
  return decoded.includes("\ufffd") ? bytes.toString("latin1") : decoded
}

/** The end of the line that starts at `from`: the offset after its line feed. */
const lineEnd = (raw: Buffer, from: number, end: number): number => {
  const at = raw.indexOf(LF, from)
  return at < 0 || at >= end ? end : at + 1
}

const isBlank = (raw: Buffer, from: number, to: number) =>
  to - from === 0 ||
  (to - from === 1 && raw[from] === LF) ||
  (to - from === 2 && raw[from] === CR && raw[from + 1] === LF)

/** Reads header fields up to the blank line. */
const readHeaders = (raw: Buffer, start: number, end: number): { headers: Array<RawHeader>; bodyStart: number } => {
  const headers: Array<RawHeader> = []
  let field = ""
  const flush = () => {
    const colon = field.indexOf(":")
    if (colon > 0 && headers.length < limits.headers) {
      headers.push({ name: field.slice(0, colon).trim(), value: field.slice(colon + 1).trim() })
    }
    field = ""
  }
  let at = start
  while (at < end) {
    const next = lineEnd(raw, at, end)
    if (isBlank(raw, at, next)) {
      flush()
      return { headers, bodyStart: next }
    }
    if (at - start < limits.headerBytes) {
      const folded = raw[at] === 32 || raw[at] === 9
      if (!folded) flush()
      field += text(raw.subarray(at, Math.min(next, at + limits.headerBytes))).replace(/[\r\n]+$/, "")
    }
    at = next
  }
  flush()
  return { headers, bodyStart: end }
}

export const header = (part: Part, name: string): string | undefined =>
  part.headers.find((field) => field.name.toLowerCase() === name)?.value

const structured = (value: string | undefined): { value: string; params: Record<string, string> } => {
  if (value === undefined) return { value: "", params: {} }
  try {
    return libmime.parseHeaderValue(value.slice(0, 4096))
  } catch {
    return { value: "", params: {} }
  }
}

const decodeWords = (value: string): string => {
  try {
    return libmime.decodeWords(value)
  } catch {
    return value
  }
}

/** Where the parts between the delimiters of `boundary` lie (RFC 2046 section 5.1.1). */
const split = (raw: Buffer, from: number, end: number, boundary: string): Array<{ start: number; end: number }> => {
  const delimiter = Buffer.from(`--${boundary}`, "latin1")
  const pieces: Array<{ start: number; end: number }> = []
  let open: number | undefined
  let at = from
  while (true) {
    const found = raw.indexOf(delimiter, at)
    if (found < 0 || found >= end) break
    at = found + delimiter.length
    if (found !== from && raw[found - 1] !== LF) continue
    const closing = raw[at] === 45 && raw[at + 1] === 45
    const rest = raw.subarray(closing ? at + 2 : at, lineEnd(raw, at, end))
    // `--abc` is not the delimiter of boundary `ab`: only white space may follow.
    if (!/^[ \t\r\n]*$/.test(rest.subarray(0, 200).toString("latin1"))) continue
    if (open !== undefined) {
      // The line break before a delimiter belongs to the delimiter.
      const body = raw[found - 2] === CR ? found - 2 : found - 1
      pieces.push({ start: open, end: Math.max(open, body) })
    }
    open = closing ? undefined : lineEnd(raw, at, end)
    if (closing || pieces.length > limits.parts) break
    at = open ?? at
  }
  if (open !== undefined && open < end) pieces.push({ start: open, end })
  return pieces
}

/** The tree of a whole message. */
export const index = (raw: Buffer): Part => {
  let budget = limits.parts

  const read = (start: number, end: number, depth: number, defaultType: string): Part => {
    const { headers, bodyStart } = readHeaders(raw, start, end)
    const find = (name: string) => headers.find((field) => field.name.toLowerCase() === name)?.value
    const content = structured(find("content-type"))
    const disposition = structured(find("content-disposition"))
    const type = /^[\w.+-]+\/[\w.+-]+$/.test(content.value) ? content.value.toLowerCase() : defaultType
    const filename = disposition.params["filename"] ?? content.params["name"]
    const encoding = (find("content-transfer-encoding") ?? "7bit").trim().toLowerCase()
    const part = {
      start,
      bodyStart,
      end,
      headers,
      type,
      parameters: content.params,
      encoding,
      disposition: disposition.value.toLowerCase(),
      filename: filename === undefined ? null : decodeWords(filename),
    }
    if (depth >= limits.depth || budget <= 0) return { ...part, parts: [] }
    const boundary = content.params["boundary"]
    if (type.startsWith("multipart/") && boundary !== undefined && boundary !== "" && boundary.length <= 200) {
      const inner = type === "multipart/digest" ? "message/rfc822" : "text/plain"
      const pieces = split(raw, bodyStart, end, boundary).slice(0, budget)
      budget -= pieces.length
      return { ...part, parts: pieces.map((piece) => read(piece.start, piece.end, depth + 1, inner)) }
    }
    if (type === "message/rfc822" && (encoding === "7bit" || encoding === "8bit" || encoding === "binary")) {
      budget -= 1
      return { ...part, parts: [read(bodyStart, end, depth + 1, "text/plain")] }
    }
    return { ...part, parts: [] }
  }

  return read(0, raw.length, 0, "text/plain")
}
