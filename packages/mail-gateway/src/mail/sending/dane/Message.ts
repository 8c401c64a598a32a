/**
 * DNS messages (RFC 1035 section 4) as far as DANE needs them: one question out, its answer in, with what the server says
 * about the answer's authenticity. No I/O; holds for any bytes.
 */

const types = { A: 1, MX: 15, AAAA: 28, TLSA: 52 } as const
export type Type = keyof typeof types

/** RFC 6698 section 2.1. */
export interface Tlsa {
  readonly usage: number
  readonly selector: number
  readonly matching: number
  readonly data: Buffer
}

export interface MxRecord {
  readonly priority: number
  readonly exchange: string
}

/** Addresses as text. */
export type Value = string | MxRecord | Tlsa

export interface Answer {
  readonly id: number
  readonly isTruncated: boolean
  /** The server has validated all of it by DNSSEC (RFC 6840 section 5.8). */
  readonly isSecure: boolean
  /** 0 no error, 3 no such name. */
  readonly code: number
  /** The name behind aliases that has the records; undefined where there are none. */
  readonly owner: string | undefined
  readonly values: ReadonlyArray<Value>
}

const flags = { response: 0x8000, truncated: 0x0200, recursion: 0x0100, authentic: 0x0020 }
/** Bytes of an answer over UDP that arrive everywhere in one piece. */
const udpBytes = 1_232

/** The question; undefined for what is no name in DNS. It asks to be told whether the answer is authentic. */
export const question = (id: number, name: string, type: Type): Buffer | undefined => {
  const labels = name.replace(/\.$/, "").split(".")
  const isName = labels.every((label) => /^[\x21-\x7e]{1,63}$/.test(label)) && name.length <= 253
  if (!isName) return undefined
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(flags.recursion | flags.authentic, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(1, 10)
  const asked = labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, "latin1"))
  const kind = Buffer.from([0, 0, types[type], 0, 1])
  // EDNS (RFC 6891 section 6.1.2): the root, type 41, the size, no flags, no options.
  const edns = Buffer.from([0, 0, 41, udpBytes >> 8, udpBytes & 0xff, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([head, ...asked, kind, edns])
}

/** A name, which may point to where its end was written before (section 4.1.4), and where it ends. */
const nameAt = (message: Buffer, start: number): { readonly name: string; readonly next: number } => {
  const labels: Array<string> = []
  let at = start
  let next: number | undefined
  for (let steps = 0; steps < 256; steps++) {
    const length = message.readUInt8(at)
    if (length === 0) return { name: labels.join(".").toLowerCase(), next: next ?? at + 1 }
    if (length >= 0xc0) {
      next ??= at + 2
      at = message.readUInt16BE(at) & 0x3fff
    } else if (length < 64) {
      const label = message.toString("latin1", at + 1, at + 1 + length)
      if (label.includes(".")) throw new RangeError("a dot within a label")
      labels.push(label)
      at += length + 1
    } else throw new RangeError("no label")
  }
  throw new RangeError("a name without an end")
}

const valueAt = (message: Buffer, type: Type, start: number, end: number): Value => {
  switch (type) {
    case "A":
      return [...message.subarray(start, start + 4)].join(".")
    case "AAAA":
      return Array.from({ length: 8 }, (_, at) => message.readUInt16BE(start + at * 2).toString(16)).join(":")
    case "MX":
      return { priority: message.readUInt16BE(start), exchange: nameAt(message, start + 2).name }
    case "TLSA":
      return {
        usage: message.readUInt8(start),
        selector: message.readUInt8(start + 1),
        matching: message.readUInt8(start + 2),
        data: Buffer.from(message.subarray(start + 3, end)),
      }
  }
}

/** The answer to a question of this type; undefined for what is none. */
export const answer = (message: Buffer, type: Type): Answer | undefined => {
  try {
    const said = message.readUInt16BE(2)
    if ((said & flags.response) === 0) return undefined
    let at = 12
    for (let left = message.readUInt16BE(4); left > 0; left--) at = nameAt(message, at).next + 4
    const values: Array<Value> = []
    let owner: string | undefined
    for (let left = message.readUInt16BE(6); left > 0; left--) {
      const { name, next } = nameAt(message, at)
      const start = next + 10
      const end = start + message.readUInt16BE(next + 8)
      if (end > message.length) throw new RangeError("cut off")
      if (message.readUInt16BE(next) === types[type] && message.readUInt16BE(next + 2) === 1) {
        values.push(valueAt(message, type, start, end))
        owner ??= name
      }
      at = end
    }
    return {
      id: message.readUInt16BE(0),
      isTruncated: (said & flags.truncated) !== 0,
      isSecure: (said & flags.authentic) !== 0,
      code: said & 0xf,
      owner,
      values,
    }
  } catch (error) {
    // Cut off, or made by somebody who wishes us ill.
    if (error instanceof RangeError) return undefined
    throw error
  }
}
