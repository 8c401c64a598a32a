/** Networks: their spellings, what they contain, and the network that counts as one client. */
import { customerOf, isWithin as isIn, networkOf, reversed } from "@svc/cluster/net/ClientNetwork"
import { canonicalNetwork, coversNetworks, isWithin, networksOf } from "@svc/domain/account/Networks"
import ipaddr from "ipaddr.js"
import { describe, expect, it } from "vitest"

describe("A network of a credential", () => {
  it.each([
    ["10.1.2.3", "10.1.2.3"],
    ["10.1.2.3/32", "10.1.2.3"],
    ["10.1.2.3/31", "10.1.2.2/31"],
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["10.1.2.3/9", "10.0.0.0/9"],
    ["10.255.0.0/9", "10.128.0.0/9"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["2001:DB8::1", "2001:db8::1"],
    ["2001:db8::1/64", "2001:db8::/64"],
    ["2001:db8::1/128", "2001:db8::1"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["::ffff:10.1.2.3/104", "10.0.0.0/8"],
    ["::ffff:10.1.2.3/96", "0.0.0.0/0"],
    ["::ffff:0:0/90", "::ffc0:0:0/90"],
    ["10.1", undefined],
    ["10.1.2.3/33", undefined],
    ["2001:db8::/129", undefined],
    ["localhost", undefined],
    ["", undefined],
  ])("%s is written as %s", (text, canonical) => expect(canonicalNetwork(text)).toBe(canonical))

  const ours = networksOf("10.0.0.0/8 192.0.2.7 2001:db8::/32")!
  it.each([
    ["10.0.0.0", true],
    ["10.255.255.255", true],
    ["11.0.0.0", false],
    ["9.255.255.255", false],
    ["192.0.2.7", true],
    ["192.0.2.8", false],
    ["2001:db8:ffff::", true],
    ["2001:db9::", false],
    ["::ffff:10.1.2.3", true],
    ["unknown", false],
  ])("contains %s: %s", (address, expected) => {
    expect(isWithin(ours, address)).toBe(expected)
    // The second answer comes from memory.
    expect(isWithin(ours, address)).toBe(expected)
  })

  it("covers others only if each of them lies within one of it", () => {
    const covers = (outer: string | null, inner: string | null) => coversNetworks(networksOf(outer), networksOf(inner))
    expect([covers(null, null), covers(null, "10.0.0.0/8"), covers("10.0.0.0/8", null)]).toEqual([true, true, false])
    expect(covers("10.0.0.0/8", "10.0.0.0/8")).toBe(true)
    expect(covers("10.0.0.0/8", "10.1.0.0/16 10.2.3.4")).toBe(true)
    expect(covers("10.0.0.0/8", "10.1.0.0/16 11.0.0.1")).toBe(false)
    expect(covers("10.0.0.0/16", "10.0.0.0/8")).toBe(false)
    expect(covers("10.0.0.0/8 2001:db8::/32", "2001:db8:1::/48")).toBe(true)
    expect(covers("10.0.0.0/8", "2001:db8::1")).toBe(false)
  })

  it("has one parsed value for equal texts", () => {
    expect(networksOf("198.51.100.0/24")).toBe(networksOf("198.51.100.0/24"))
    for (let n = 0; n < 1_100; n++) networksOf(`10.0.${n >> 8}.${n & 255}`)
    expect(networksOf("198.51.100.0/24")!.names).toEqual(["198.51.100.0/24"])
  })
})

describe("A client address", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7", "192.0.2.0/24", "7.2.0.192"],
    ["::ffff:192.0.2.7", "192.0.2.7", "192.0.2.0/24", "7.2.0.192"],
    [
      "2001:db8:1:2:3:4:5:6",
      "2001:db8:1:2::/64",
      "2001:db8:1:2::/64",
      "6.0.0.0.5.0.0.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2",
    ],
    ["unknown", "unknown", null, undefined],
  ] as const)("%s counts as %s, is stored as %s, and is listed as %s", (address, customer, network, labels) =>
    expect([customerOf(address), networkOf(address), reversed(address)]).toEqual([customer, network, labels]),
  )

  it("is within the networks of its family", () => {
    const networks = ["10.0.0.0/8", "2001:db8::/32"].map((text) => ipaddr.parseCIDR(text))
    expect(["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"].map((one) => isIn(networks, one))).toEqual([true, true, true])
    expect(["11.0.0.1", "2001:db9::1", "x", undefined].map((one) => isIn(networks, one))).toEqual(Array(4).fill(false))
    expect(isIn([], "10.1.2.3")).toBe(false)
  })
})
