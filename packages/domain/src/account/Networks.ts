/** Networks from which a credential may be used: addresses and CIDR ranges of IPv4 and IPv6 (RFC 4632, RFC 4291). */
import ipaddr from "ipaddr.js"

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [Address, number]

const rangeOf = (text: string): Range | undefined => {
  try {
    // The library would read `10.1` as `10.0.0.1`, which is never intended.
    if (!text.includes(":") && !/^\d+\.\d+\.\d+\.\d+(\/|$)/.test(text)) return undefined
    const [address, given] = text.includes("/") ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), undefined]
    const bits = given ?? (address.kind() === "ipv6" ? 128 : 32)
    // Convert an IPv4-mapped IPv6 address to IPv4.
    return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96
      ? [address.toIPv4Address(), bits - 96]
      : [address, bits]
  } catch {
    return undefined
  }
}

/**
 * Returns the canonical form: without host bits, and without the prefix length for a single address. Returns undefined
 * if the text is not a network.
 */
export const canonicalNetwork = (text: string): string | undefined => {
  const range = rangeOf(text)
  if (range === undefined) return undefined
  const [address, bits] = range
  const bytes = address.toByteArray().map((byte, at) => {
    const left = Math.min(8, Math.max(0, bits - at * 8))
    return byte & (0xff << (8 - left)) & 0xff
  })
  const first = ipaddr.fromByteArray(bytes).toString()
  return bits === bytes.length * 8 ? first : `${first}/${bits}`
}

/** Parsed networks. */
export interface Networks {
  readonly names: ReadonlyArray<string>
  /** The stored form, separated by spaces. */
  readonly text: string
  readonly ranges: ReadonlyArray<Range>
}

const within = ([inner, innerBits]: Range, [outer, bits]: Range) =>
  inner.kind() === outer.kind() && innerBits >= bits && inner.match(outer as never, bits)

const make = (text: string): Networks => {
  const names = text.split(" ").filter((name) => name !== "")
  return { names, text, ranges: names.map(rangeOf).filter((range) => range !== undefined) }
}

const kept = new Map<string, Networks>()
const keptAtMost = 1000

/** Parses the stored form; null means no restriction. Equal texts share one value. */
export const networksOf = (text: string | null): Networks | null => {
  if (text === null) return null
  const known = kept.get(text)
  if (known !== undefined) return known
  const made = make(text)
  if (kept.size >= keptAtMost) kept.clear()
  kept.set(text, made)
  return made
}

const judged = ({ ranges }: Networks, address: string): boolean => {
  if (!ipaddr.isValid(address)) return false
  const from = ipaddr.process(address)
  return ranges.some((range) => within([from, from.kind() === "ipv6" ? 128 : 32], range))
}

/**
 * The result for the latest address. A credential usually calls from one place, and parsing an address is expensive.
 */
const last = new WeakMap<Networks, { readonly address: string; readonly isIn: boolean }>()

/** Returns whether the address is within the networks. An unknown address is not. */
export const isWithin = (networks: Networks, address: string): boolean => {
  const known = last.get(networks)
  if (known?.address === address) return known.isIn
  const isIn = judged(networks, address)
  last.set(networks, { address, isIn })
  return isIn
}

/** Returns whether each inner network lies within an outer one. No restriction is only covered by no restriction. */
export const coversNetworks = (outer: Networks | null, inner: Networks | null): boolean =>
  outer === null ||
  (inner !== null && inner.ranges.every((one) => outer.ranges.some((candidate) => within(one, candidate))))
