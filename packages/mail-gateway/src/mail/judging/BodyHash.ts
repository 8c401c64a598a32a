/**
 * The hash of a body that a signature is made of or compared with (RFC 6376 section 3.4): one pass over the bytes, whatever
 * the lines are like, in slices, so that whoever shares its thread with others can let them go first in between.
 */
import { createHash } from "node:crypto"

const LF = 10
const CR = 13

/** Bytes that are taken, or made, at a time: well under a millisecond of work. */
const sliceBytes = 64 * 1024

/** Without the empty lines at its end; of what follows the hash adds one line break. */
const withoutLastBreaks = (body: Buffer): Buffer => {
  let end = body.length
  while (end >= 2 && body[end - 1] === LF && body[end - 2] === CR) end -= 2
  return body.subarray(0, end)
}

/** Section 3.4.4: white space folded, none at the end of a line, no empty lines at the end. */
function* relaxed(body: Buffer): Generator<Buffer> {
  const out = Buffer.allocUnsafeSlow(sliceBytes)
  let size = 0
  let breaks = 0
  let space = false
  let some = false
  let next = sliceBytes
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]!
    if (byte === 32 || byte === 9) space = true
    else if (byte === CR && body[at + 1] === LF) {
      breaks++
      space = false
      at++
    } else {
      for (; breaks > 0; breaks--) {
        if (size + 4 > sliceBytes) {
          yield out.subarray(0, size)
          size = 0
        }
        out[size++] = CR
        out[size++] = LF
      }
      if (space) out[size++] = 32
      space = false
      out[size++] = byte
      some = true
    }
    // What is taken counts as what is made: white space makes nothing.
    if (size + 4 > sliceBytes || at >= next) {
      yield out.subarray(0, size)
      size = 0
      next = at + sliceBytes
    }
  }
  if (some) {
    out[size++] = CR
    out[size++] = LF
  }
  yield out.subarray(0, size)
}

/** Section 3.4.3: as it is, but that it ends with exactly one line break. */
function* simple(body: Buffer): Generator<Buffer> {
  const content = withoutLastBreaks(body)
  for (let at = 0; at < content.length; at += sliceBytes) yield content.subarray(at, at + sliceBytes)
  yield Buffer.from("\r\n")
}

/** Whether both forms are the same: no white space is folded or dropped, and something is said. Most of what we write is. */
const isRelaxed = (body: Buffer): boolean => {
  const last = body.at(-1)
  return (
    last !== 32 &&
    !body.includes("  ") &&
    !body.includes(" \r") &&
    !body.includes("\t") &&
    withoutLastBreaks(body).length > 0
  )
}

/** The canonical form of a body. A slice is good until the next one is asked for. */
const slices = (body: Buffer, canonicalization: string): Generator<Buffer> =>
  canonicalization === "relaxed" && !isRelaxed(body) ? relaxed(body) : simple(body)

export interface Hashed {
  /** Base64. */
  readonly hash: string
  /** Bytes of the canonical body. */
  readonly length: number
}

/** Hashes a body a slice at a time; what it returns in the end is the hash. */
export function* hashing(
  body: Buffer,
  canonicalization: string,
  algorithm: "sha1" | "sha256",
): Generator<void, Hashed, void> {
  const hash = createHash(algorithm)
  let length = 0
  for (const slice of slices(body, canonicalization)) {
    hash.update(slice)
    length += slice.length
    yield
  }
  return { hash: hash.digest("base64"), length }
}

/** The hashes of one body, each made once for all signatures of a message. */
export const make = (body: Buffer) => {
  const hashes = new Map<string, Hashed>()
  return {
    of: (canonicalization: string, algorithm: "sha1" | "sha256"): Hashed => {
      const key = `${canonicalization} ${algorithm}`
      const known = hashes.get(key)
      if (known !== undefined) return known
      const work = hashing(body, canonicalization, algorithm)
      let step = work.next()
      while (step.done !== true) step = work.next()
      hashes.set(key, step.value)
      return step.value
    },
  }
}
