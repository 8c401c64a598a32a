/** The networks that a credential may be used from: addresses and CIDR ranges, IPv4 and IPv6 (RFC 4632, RFC 4291). */
import ipaddr from "ipaddr.js"

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [Address, number]

const rangeOf = (text: string): Range | undefined => {
  try {
    // The library reads `10.1` as `10.0.0.1`, which nobody means.
    if (!text.includes(":") && !/^\d+\.\d+\.\d+\.\d+(\/|$)/.test(text)) return undefined
    const [address, given] = text.includes("/") ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), undefined]
    const bits = given ?? (address.kind() === "ipv6" ? 128 : 32)
    // An address of IPv4 in the clothes of IPv6 comes as what it is.
    return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96
      ? [address.toIPv4Address(), bits - 96]
      : [address, bits]
  } catch {
    return undefined
  }
}

/** As it is stored and shown: without the bits behind the range, one address without its length. Undefined for none. */
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
  /** As they are stored, with a space between each. */
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

/** The networks of a text as it is stored; null is everywhere. Credentials with the same share one value. */
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

/** What was found of the address that came last: a credential's calls mostly come from one place, and reading it is dear. */
const last = new WeakMap<Networks, { readonly address: string; readonly isIn: boolean }>()

/** Whether a call from the address is within them. An address that is not known is within none. */
export const isWithin = (networks: Networks, address: string): boolean => {
  const known = last.get(networks)
  if (known?.address === address) return known.isIn
  const isIn = judged(networks, address)
  last.set(networks, { address, isIn })
  return isIn
}

/** Whether each of the networks lies within one of the others; everywhere lies within everywhere only. */
export const coversNetworks = (outer: Networks | null, inner: Networks | null): boolean =>
  outer === null ||
  (inner !== null && inner.ranges.every((one) => outer.ranges.some((candidate) => within(one, candidate))))
