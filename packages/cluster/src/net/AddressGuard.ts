/** Restricts URLs from users to public addresses, against server-side request forgery. */
import ipaddr from "ipaddr.js"

/** Refused ranges in addition to the library's own list (IANA special-purpose registries). */
const refusedRanges = [
  "0.0.0.0/8",
  // The control service of Azure's virtual machines, at a public address.
  "168.63.129.16/32",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "240.0.0.0/4",
  "64:ff9b:1::/48",
  "100::/64",
  "2001:db8::/32",
  "fec0::/10",
].map((range) => ipaddr.parseCIDR(range))

/** The IPv6 range that IANA assigned for the public Internet. `::a.b.c.d` and unassigned addresses are outside. */
const globalUnicast = ipaddr.parseCIDR("2000::/3")

/** IPv6 ranges that contain an IPv4 address, and its byte offset. */
const embedded = [
  { range: ipaddr.parseCIDR("::ffff:0:0/96"), at: 12 },
  { range: ipaddr.parseCIDR("64:ff9b::/96"), at: 12 },
  { range: ipaddr.parseCIDR("2002::/16"), at: 2 },
]

/** Returns whether an address is public unicast. An IPv4 address in an IPv6 one is checked as IPv4. */
export const isPublic = (address: string): boolean => {
  // The library parses the deprecated IPv4-compatible form as IPv4-mapped, which is a different address.
  if (!ipaddr.isValid(address) || /^::\d+\./.test(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed instanceof ipaddr.IPv6) {
    const carrier = embedded.find(({ range }) => parsed.match(range))
    if (carrier !== undefined) {
      return isPublic(
        parsed
          .toByteArray()
          .slice(carrier.at, carrier.at + 4)
          .join("."),
      )
    }
    if (!parsed.match(globalUnicast)) return false
  }
  if (parsed.range() !== "unicast") return false
  return !refusedRanges.some((range) => range[0].kind() === parsed.kind() && parsed.match(range))
}
