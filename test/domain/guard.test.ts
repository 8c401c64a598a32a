import { isPublic } from "@svc/cluster/net/AddressGuard"
import { describe, expect, it } from "vitest"

const words = (text: string) => text.trim().split(/\s+/)

describe("the address guard for users' URLs", () => {
  it.each(words("8.8.8.8 93.184.216.34 2606:4700::1111 2a00:1450:4001:80e::200e 64:ff9b::8.8.8.8"))(
    "%s is public",
    (address) => expect(isPublic(address)).toBe(true),
  )
  it.each(
    words(`
      0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 168.63.129.16 172.16.0.1 172.31.255.255 192.0.0.8
      192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255
      :: ::1 fc00::1 fd12::1 fe80::1 fec0::1 ff02::1 100::1 2001::1 2001:1::1 2001:3::1 2001:db8::1
      ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:168.63.129.16 64:ff9b::10.0.0.1 ::8.8.8.8 ::127.0.0.1 4000::1 2002:7f00:1:: 2002:0a00:0001:: nonsense
    `),
  )("%s is rejected", (address) => expect(isPublic(address)).toBe(false))
})
