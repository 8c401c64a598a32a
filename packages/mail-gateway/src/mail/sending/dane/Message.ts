/**
 * Encodes DNS queries and parses answers (RFC 1035 section 4) as far as DANE needs them, including the AD flag. No I/O;
 * accepts any bytes.
 */

const types = { A: 1, MX: 15, AAAA: 28, TLSA: 52 } as const
export type Type = keyof typeof types

/** A TLSA record (RFC 6698 section 2.1). */
export interface Tlsa {
  readonly usage: number
  readonly selector: number
  readonly matching: number
  readonly data: Buffer
}

interface MxRecord {
  readonly priority: number
  readonly exchange: string
}

/** Addresses are in text form. */
export type Value = string | MxRecord | Tlsa

export interface Answer {
  readonly id: number
  readonly isTruncated: boolean
  /** The server validated the whole answer by DNSSEC (RFC 6840 section 5.8). */
  readonly isSecure: boolean
  /** 0 means success, 3 that the name does not exist. */
  readonly code: number
  /** The name that owns the records, after following aliases. Undefined without records. */
  readonly owner: string | undefined
  readonly values: ReadonlyArray<Value>
}

const flags = { response: 0x8000, truncated: 0x0200, recursion: 0x0100, authentic: 0x0020 }
/** An answer over UDP of this size is not fragmented on common networks. */
const udpBytes = 1_232

/** Encodes a query that requests the AD flag. Returns undefined if `name` is not a valid DNS name. */
export const question = (id: number, name: string, type: Type): Buffer | undefined => {
  const labels = name.replace(/\.$/, "").split(".")
  const isName = labels.every((label) => /^[\x21-\x7e]{1,63}$/.test(label)) && name.length <= 253
  if (!isName) return undefined
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(flags.recursion | flags.authentic, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(1, 10)
  const encodedName = labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, "latin1"))
  const kind = Buffer.from([0, 0, types[type], 0, 1])
  // EDNS (RFC 6891 section 6.1.2): the root, type 41, the size, no flags, no options.
  const edns = Buffer.from([0, 0, 41, udpBytes >> 8, udpBytes & 0xff, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([head, ...encodedName, kind, edns])
}

/** Parses a name, which may contain compression pointers (section 4.1.4). Returns it with the offset of its end. */
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

/** Parses the answer to a query of this type. Returns undefined if it is malformed. */
export const answer = (message: Buffer, type: Type): Answer | undefined => {
  try {
    const flagBits = message.readUInt16BE(2)
    if ((flagBits & flags.response) === 0) return undefined
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
      isTruncated: (flagBits & flags.truncated) !== 0,
      isSecure: (flagBits & flags.authentic) !== 0,
      code: flagBits & 0xf,
      owner,
      values,
    }
  } catch (error) {
    // The message is truncated or malicious.
    if (error instanceof RangeError) return undefined
    throw error
  }
}
