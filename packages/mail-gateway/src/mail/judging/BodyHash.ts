/**
 * The hash of a body that a signature is compared with (RFC 6376 section 3.4): each canonical form is made once for
 * all signatures of a message, by one pass over the bytes, whatever the lines are like.
 */
import { createHash } from "node:crypto"

const LF = 10
const CR = 13

/** Without the empty lines at its end; of what follows the hash adds one line break. */
const withoutLastBreaks = (body: Buffer): Buffer => {
  let end = body.length
  while (end >= 2 && body[end - 1] === LF && body[end - 2] === CR) end -= 2
  return body.subarray(0, end)
}

/** Section 3.4.4: white space folded, none at the end of a line, no empty lines at the end. */
const relaxed = (body: Buffer): Buffer => {
  const out = Buffer.allocUnsafeSlow(body.length + 2)
  let size = 0
  let breaks = 0
  let space = false
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]!
    if (byte === 32 || byte === 9) space = true
    else if (byte === CR && body[at + 1] === LF) {
      breaks++
      space = false
      at++
    } else {
      for (; breaks > 0; breaks--) {
        out[size++] = CR
        out[size++] = LF
      }
      if (space) out[size++] = 32
      space = false
      out[size++] = byte
    }
  }
  if (size > 0) {
    out[size++] = CR
    out[size++] = LF
  }
  return out.subarray(0, size)
}

/** Section 3.4.3: as it is, but that it ends with exactly one line break. */
const simple = (body: Buffer): Buffer => {
  const content = withoutLastBreaks(body)
  // The bytes after the content are a line break, if there are any.
  return content.length + 2 <= body.length
    ? body.subarray(0, content.length + 2)
    : Buffer.concat([content, Buffer.from("\r\n")])
}

export interface Hashed {
  /** Base64. */
  readonly hash: string
  /** Bytes of the canonical body. */
  readonly length: number
}

/** The hashes of one body. */
export const make = (body: Buffer) => {
  const forms = new Map<string, Buffer>()
  const hashes = new Map<string, Hashed>()
  const formOf = (canonicalization: string): Buffer => {
    const known = forms.get(canonicalization)
    if (known !== undefined) return known
    const form = canonicalization === "relaxed" ? relaxed(body) : simple(body)
    forms.set(canonicalization, form)
    return form
  }
  return {
    of: (canonicalization: string, algorithm: "sha1" | "sha256"): Hashed => {
      const key = `${canonicalization} ${algorithm}`
      const known = hashes.get(key)
      if (known !== undefined) return known
      const form = formOf(canonicalization)
      const hashed = { hash: createHash(algorithm).update(form).digest("base64"), length: form.length }
      hashes.set(key, hashed)
      return hashed
    },
  }
}
