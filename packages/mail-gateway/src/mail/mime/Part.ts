/**
 * The structure of a message as a tree of parts with byte offsets into the raw message (RFC 2045, RFC 2046). Accepts
 * any bytes: whatever cannot be split, or exceeds a limit, is a single opaque part. No I/O, no exceptions. One pass
 * over the lines with a stack of open boundaries, so nesting adds no cost, and a limit on lines bounds the rest.
 */
import * as ContentFields from "./ContentFields.ts"
import * as Header from "./Header.ts"
import { withoutComments } from "./Parameters.ts"

/**
 * Limits against hostile messages. The tree has at most `depth` levels; parts of deeper multiparts are attached to the
 * last level, so that no text is lost. Beyond the other limits a part is not split. `lines` counts those inspected
 * individually: lines of headers, and body lines that start with `--`.
 */
export const limits = { depth: 20, parts: 1_000, lines: 100_000, boundary: 200 }

export interface Part {
  /** Offsets: the header starts at `start`; the body is from `bodyStart` to `end`, exclusive. */
  readonly start: number
  readonly bodyStart: number
  readonly end: number
  readonly rows: ReadonlyArray<Header.Row>
  /** In lower case; `text/plain` if missing or invalid. */
  readonly type: string
  readonly parameters: Readonly<Record<string, string>>
  /** The transfer encoding in lower case; `7bit` if missing. */
  readonly encoding: string
  /** `attachment`, `inline` or empty, in lower case. */
  readonly disposition: string
  readonly filename: string | null
  /** The parts of a multipart, the message of a message/rfc822, otherwise empty. */
  readonly parts: ReadonlyArray<Part>
}

const CR = 13
const LF = 10

interface Open {
  start: number
  bodyStart: number
  end: number
  rows: ReadonlyArray<Header.Row>
  type: string
  parameters: Readonly<Record<string, string>>
  encoding: string
  disposition: string
  filename: string | null
  readonly parts: Array<Open>
  /** The delimiter after `--`, while the multipart is open. */
  boundary?: string
}

/** Some senders add a comment or quotation marks. */
const encodingOf = (value: string): string => {
  const text = withoutComments(value.slice(0, 400)).slice(0, 40).trim().toLowerCase()
  return /^"?([\w-]+)"?(?:\s*[;(].*)?$/.exec(text)?.[1] ?? text
}

const described = (
  raw: Buffer,
  block: Header.Block,
  start: number,
  defaultType: string,
  fields: ContentFields.ContentFields,
): Open => {
  const find = (name: string) => Header.header(raw, block.rows, name)
  const content = fields.structured(find("content-type"))
  const disposition = fields.structured(find("content-disposition"))
  // An empty file name counts as none.
  const filename = disposition.params["filename"] || content.params["name"] || undefined
  return {
    start,
    bodyStart: block.bodyStart,
    end: raw.length,
    rows: block.rows,
    type: /^[\w.+-]+\/[\w.+-]+$/.test(content.value) ? content.value.toLowerCase() : defaultType,
    parameters: content.params,
    encoding: encodingOf(find("content-transfer-encoding") ?? "7bit"),
    disposition: disposition.value.toLowerCase(),
    filename: filename === undefined ? null : fields.filename(filename),
    parts: [],
  }
}

/** Returns the boundary as it occurs in the body. A non-ASCII boundary was decoded as UTF-8 if the field is UTF-8. */
const asWritten = (raw: Buffer, block: Header.Block, boundary: string): string => {
  // oxlint-disable-next-line no-control-regex -- ASCII
  if (/^[\x00-\x7f]*$/.test(boundary)) return boundary
  const utf8 = Buffer.from(boundary, "utf8")
  const row = block.rows.findLast(({ key }) => key === "content-type")
  const isUtf8 = row !== undefined && raw.subarray(row.value, row.end).includes(utf8)
  return (isUtf8 ? utf8 : Buffer.from(boundary, "latin1")).toString("latin1")
}

const isIdentity = (encoding: string) => encoding === "7bit" || encoding === "8bit" || encoding === "binary"

/**
 * The work of one step of {@link indexing}, a few milliseconds: bytes searched, lines inspected, and the cost of a part
 * in lines.
 */
const step = { bytes: 1024 * 1024, lines: 2_000, part: 100 }

/** Indexes a message in steps, so that callers can yield between them. */
export function* indexing(raw: Buffer): Generator<void, Part, void> {
  let partsLeft = limits.parts
  let linesLeft = limits.lines
  const fields = ContentFields.make()
  /** The open parts from the message down to the current one. */
  const stack: Array<Open> = []
  /**
   * The stack positions of the open multiparts with each boundary, innermost last, so that a line costs the same at any
   * depth.
   */
  const boundaries = new Map<string, Array<number>>()
  const placeOf = (boundary: string) => boundaries.get(boundary)?.at(-1)
  /** Closes the multipart at this position, the innermost with its boundary. */
  const shut = (place: number) => {
    const { boundary } = stack[place]!
    if (boundary === undefined) return
    delete stack[place]!.boundary
    const places = boundaries.get(boundary)!
    places.pop()
    if (places.length === 0) boundaries.delete(boundary)
  }

  /** Returns the innermost open multipart that the line at `at` delimits, and whether it closes it. */
  const delimiter = (at: number, next: number): { depth: number; closes: boolean } | undefined => {
    if (raw[at] !== 45 || raw[at + 1] !== 45 || next - at > limits.boundary + 100) return undefined
    const line = raw.toString("latin1", at + 2, next).trimEnd()
    const begins = placeOf(line)
    const ends = line.endsWith("--") ? placeOf(line.slice(0, -2)) : undefined
    if (begins === undefined && ends === undefined) return undefined
    return (begins ?? -1) > (ends ?? -1) ? { depth: begins!, closes: false } : { depth: ends!, closes: true }
  }

  /** Ends every part above `depth` before the delimiter at `at`. */
  const cut = (depth: number, at: number) => {
    // The line break before a delimiter belongs to the delimiter.
    const end = raw[at - 1] !== LF ? at : raw[at - 2] === CR ? at - 2 : at - 1
    for (let place = stack.length - 1; place > depth; place--) shut(place)
    for (const part of stack.splice(depth + 1)) {
      part.end = Math.max(part.start, end)
      part.bodyStart = Math.min(part.bodyStart, part.end)
    }
  }

  /** Reads the header at `start`, opens the part, and returns the offset to continue at. */
  const open = (start: number, defaultType: string): number => {
    const inside = stack.length > 0
    const block = Header.read(
      raw,
      start,
      raw.length,
      // A line that is not a field starts the body, even without a blank line.
      inside
        ? (at, next) => linesLeft-- <= 0 || delimiter(at, next) !== undefined || !Header.belongs(raw, at, next)
        : undefined,
    )
    const part = described(raw, block, start, defaultType, fields)
    const isTooDeep = stack.length > limits.depth
    const siblings = stack[Math.min(stack.length, limits.depth) - 1]?.parts
    // Beyond the maximum depth the part replaces the multipart of which it is the first part.
    if (isTooDeep && siblings?.at(-1) === stack.at(-1)) siblings?.pop()
    siblings?.push(part)
    stack.push(part)
    // An embedded message has a single part, so no sibling can be added.
    const isSplit = stack.length <= limits.depth || stack[limits.depth - 1]!.type.startsWith("multipart/")
    if (partsLeft <= 0 || !isSplit) return block.bodyStart
    const boundary = part.parameters["boundary"]
    if (part.type.startsWith("multipart/")) {
      if (boundary !== undefined && boundary !== "" && boundary.length <= limits.boundary) {
        part.boundary = asWritten(raw, block, boundary).trimEnd()
        const places = boundaries.get(part.boundary)
        if (places === undefined) boundaries.set(part.boundary, [stack.length - 1])
        else places.push(stack.length - 1)
      }
    } else if (part.type === "message/rfc822" && isIdentity(part.encoding) && stack.length <= limits.depth) {
      partsLeft--
      return open(block.bodyStart, "text/plain")
    }
    return block.bodyStart
  }

  let at = open(0, "text/plain")
  const root = stack[0]!
  /** The remaining lines at the start of this step, and the parts opened in it. */
  let turnAt = linesLeft
  let parts = 0
  /** The range that is searched in this step. */
  let reach = raw.subarray(0, Math.min(raw.length, at + step.bytes))
  while (linesLeft-- > 0 && at < raw.length && boundaries.size > 0) {
    if (turnAt - linesLeft + step.part * parts > step.lines) {
      yield
      turnAt = linesLeft
      parts = 0
    }
    const next = Header.lineEnd(raw, at, raw.length)
    const found = delimiter(at, next)
    if (found !== undefined) {
      cut(found.depth, at)
      const parent = stack[found.depth]!
      if (found.closes || partsLeft-- <= 0) {
        shut(found.depth)
        at = next
      } else if (next < raw.length) {
        at = open(next, parent.type === "multipart/digest" ? "message/rfc822" : "text/plain")
        parts++
        continue
      } else break
    }
    // Only lines that start with `--` can be delimiters.
    let from = Math.max(next - 1, 0)
    let dashes = raw[next] === 45 && raw[next + 1] === 45 ? next : reach.indexOf("\n--", from) + 1
    while (dashes <= 0 && reach.length < raw.length) {
      yield
      // Two bytes of the pattern may precede the end.
      from = Math.max(from, reach.length - 2)
      reach = raw.subarray(0, Math.min(raw.length, from + step.bytes))
      dashes = reach.indexOf("\n--", from) + 1
    }
    if (dashes <= 0) break
    at = dashes
  }
  return root
}

/** Indexes a whole message. */
export const index = (raw: Buffer): Part => {
  const work = indexing(raw)
  let next = work.next()
  while (next.done !== true) next = work.next()
  return next.value
}
