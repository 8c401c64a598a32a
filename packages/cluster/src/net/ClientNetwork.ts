/** Clients by their networks: lists of them as settings have them, and what one client is to a limit. */
import ipaddr from "ipaddr.js"

export type Networks = ReadonlyArray<[ipaddr.IPv4 | ipaddr.IPv6, number]>

export const isWithin = (networks: Networks, address: string | undefined): boolean => {
  if (networks.length === 0 || address === undefined || !ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits))
}

/** One customer has an IPv4 address, or an IPv6 /64, to itself. */
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

/** The /24 or /64 of an address, as far as it may be kept where addresses may not. */
export const networkOf = (address: string): string | null => {
  if (!ipaddr.isValid(address)) return null
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? customerOf(address) : `${parsed.octets.slice(0, 3).join(".")}.0/24`
}

/** The name under which lists in DNS keep an address (RFC 5782): its octets or nibbles, last first. */
export const reversed = (address: string): string | undefined => {
  if (!ipaddr.isValid(address)) return undefined
  const bytes = ipaddr.process(address).toByteArray()
  const labels =
    bytes.length === 4
      ? bytes.map(String)
      : bytes.flatMap((byte) => [(byte >> 4).toString(16), (byte & 15).toString(16)])
  return labels.toReversed().join(".")
}
