/** Networks of client addresses: lists of networks in settings, and the network that limits count as one client. */
import ipaddr from "ipaddr.js"

export type Networks = ReadonlyArray<[ipaddr.IPv4 | ipaddr.IPv6, number]>

export const isWithin = (networks: Networks, address: string | undefined): boolean => {
  if (networks.length === 0 || address === undefined || !ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits))
}

/** Returns the network that limits count as one client: an IPv4 address or an IPv6 /64. */
export const customerOf = (address: string): string => {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6
    ? `${parsed.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(":")}::/64`
    : parsed.toString()
}

/** Returns the /24 or /64 of an address, to be stored instead of the address. */
export const networkOf = (address: string): string | null => {
  if (!ipaddr.isValid(address)) return null
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? customerOf(address) : `${parsed.octets.slice(0, 3).join(".")}.0/24`
}

/** Returns the labels of an address in DNS lists (RFC 5782): its octets or nibbles in reverse order. */
export const reversed = (address: string): string | undefined => {
  if (!ipaddr.isValid(address)) return undefined
  const bytes = ipaddr.process(address).toByteArray()
  const labels =
    bytes.length === 4
      ? bytes.map(String)
      : bytes.flatMap((byte) => [(byte >> 4).toString(16), (byte & 15).toString(16)])
  return labels.toReversed().join(".")
}
