/**
 * Parses headers of the PROXY protocol, versions 1 and 2, in which a load balancer names its client
 * (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt).
 */
import { isIPv4, isIPv6 } from "node:net"

export interface Source {
  readonly address: string
  readonly port: number
}

/** A header of `length` bytes. It has no source if the connection is the balancer's own (a health check). */
interface Header {
  readonly length: number
  readonly source?: Source
}

const signature = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1")
const textLimit = 107
const binaryHead = 16
/** Largest size of the addresses and extensions. */
const binaryLimit = 2_048

const startsAlike = (bytes: Buffer, whole: Buffer) => {
  const count = Math.min(bytes.length, whole.length)
  return bytes.subarray(0, count).equals(whole.subarray(0, count))
}

const text = (bytes: Buffer): Header | "incomplete" | "invalid" => {
  const end = bytes.subarray(0, textLimit).indexOf("\r\n")
  if (end < 0) return bytes.length >= textLimit ? "invalid" : "incomplete"
  const [, family, source, , port] = bytes.subarray(0, end).toString("latin1").split(" ")
  const length = end + 2
  if (family === "UNKNOWN") return { length }
  if (source === undefined || port === undefined || !/^\d{1,5}$/.test(port) || Number(port) > 65_535) return "invalid"
  const fits = family === "TCP4" ? isIPv4(source) : family === "TCP6" && isIPv6(source)
  return fits ? { length, source: { address: source, port: Number(port) } } : "invalid"
}

const binary = (bytes: Buffer): Header | "incomplete" | "invalid" => {
  if (bytes.length < binaryHead) return "incomplete"
  const size = bytes.readUInt16BE(14)
  const version = bytes[12]! >> 4
  const command = bytes[12]! & 15
  if (version !== 2 || command > 1 || size > binaryLimit) return "invalid"
  const length = binaryHead + size
  if (bytes.length < length) return "incomplete"
  if (command === 0) return { length }
  const family = bytes[13]!
  const at = bytes.subarray(binaryHead, length)
  if (family === 0x11 && size >= 12) {
    return { length, source: { address: at.subarray(0, 4).join("."), port: at.readUInt16BE(8) } }
  }
  if (family === 0x21 && size >= 36) {
    const groups = Array.from({ length: 8 }, (_, group) => at.readUInt16BE(group * 2).toString(16))
    return { length, source: { address: groups.join(":"), port: at.readUInt16BE(32) } }
  }
  return { length }
}

/** Parses the first bytes of a connection. */
export const read = (bytes: Buffer): Header | "incomplete" | "invalid" => {
  if (startsAlike(bytes, signature)) return bytes.length < signature.length ? "incomplete" : binary(bytes)
  if (startsAlike(bytes, Buffer.from("PROXY "))) return text(bytes)
  return "invalid"
}
