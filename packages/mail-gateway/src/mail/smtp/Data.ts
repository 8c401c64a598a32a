/**
 * The bytes of one DATA as they arrive: kept up to the size limit, hashed, and watched for what no honest sender
 * sends: bare CR or LF, by which servers are made to disagree on where a message ends (RFC 5321 section 2.3.8), NUL,
 * and floods of tiny lines. No I/O.
 */
import { createHash, type Hash, hash } from "node:crypto"

export type Flaw = "bare_line_break" | "nul" | "short_lines" | "too_large" | "loop"

const LF = 10
const CR = 13

/** Lines per byte above which a large message is one of dots or nothing, which costs far more than its size. */
const flood = { fromLines: 200_000, bytesPerLine: 4 }

/** RFC 5321 section 6.3: a message with more Received fields goes in circles. */
const maxReceived = 100

/** Bytes above which a message is put together as it comes: to do it at the end would take too long at once. */
const large = 1024 * 1024

/** Bytes of a line from which on its end is faster looked for than waited for. */
const longLine = 40

export interface Received {
  readonly raw: Buffer
  readonly sha256: Uint8Array
}

export const make = (maxBytes: number) => {
  /** Of the chunks so far, from the second one on: most messages are one, which is hashed at once for a fraction. */
  let hashing: Hash | undefined
  let chunks: Array<Buffer> = []
  /** A large message as far as it came; it has room for more. */
  let whole: Buffer | undefined
  let held = 0
  let size = 0
  let lines = 0
  let afterCr = false
  let flaw: Flaw | undefined

  const byBytes = (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (afterCr !== (byte === LF)) flaw = "bare_line_break"
      if (byte === LF) lines++
      afterCr = byte === CR
    }
  }

  const byBreaks = (chunk: Buffer) => {
    // A CR at the end of the chunk before this one must be followed by our first byte.
    if (afterCr && chunk[0] !== LF) flaw = "bare_line_break"
    for (let at = chunk.indexOf(CR); at >= 0 && at < chunk.length - 1; at = chunk.indexOf(CR, at + 1)) {
      if (chunk[at + 1] !== LF) flaw = "bare_line_break"
    }
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) {
      lines++
      if (at === 0 ? !afterCr : chunk[at - 1] !== CR) flaw = "bare_line_break"
    }
    afterCr = chunk[chunk.length - 1] === CR
  }

  const inspect = (chunk: Buffer) => {
    if (chunk.includes(0)) flaw = "nul"
    // To have each line break looked for costs less where lines are long, and many times more where they are short.
    if (size < lines * longLine) byBytes(chunk)
    else byBreaks(chunk)
    if (lines > flood.fromLines && size < lines * flood.bytesPerLine) flaw = "short_lines"
  }

  const gather = (chunk: Buffer) => {
    if (whole === undefined && size <= large) return void chunks.push(chunk)
    if (whole === undefined || whole.length < size) {
      const before = whole === undefined ? chunks : [whole.subarray(0, held)]
      // Room that is not used is not taken from the system.
      whole = Buffer.allocUnsafeSlow(Math.max(size, Math.min(2 * size, maxBytes)))
      held = 0
      for (const piece of before) held += piece.copy(whole, held)
      chunks = []
    }
    held += chunk.copy(whole, held)
  }

  return {
    /** Takes the next bytes. After a flaw they are only counted. */
    push: (chunk: Buffer): void => {
      if (chunk.length === 0) return
      size += chunk.length
      if (size > maxBytes) flaw = "too_large"
      if (flaw === undefined) inspect(chunk)
      if (flaw !== undefined) {
        chunks = []
        whole = undefined
        return
      }
      if (size > chunk.length) {
        hashing ??= createHash("sha256").update(chunks[0] ?? whole!.subarray(0, held))
        hashing.update(chunk)
      }
      gather(chunk)
    },
    size: () => size,
    flaw: () => flaw,
    /** The message, or what is wrong with it. */
    finish: (): Received | Flaw => {
      if (flaw !== undefined) return flaw
      if (afterCr) return "bare_line_break"
      const raw = whole?.subarray(0, held) ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      if (receivedFields(raw) > maxReceived) return "loop"
      return { raw, sha256: new Uint8Array(hashing === undefined ? hash("sha256", raw, "buffer") : hashing.digest()) }
    },
  }
}

const receivedFields = (raw: Buffer): number => {
  const end = raw.indexOf("\r\n\r\n")
  const head = raw.subarray(0, Math.min(end < 0 ? raw.length : end, 1024 * 1024)).toString("latin1")
  return head.match(/^Received:/gim)?.length ?? 0
}
