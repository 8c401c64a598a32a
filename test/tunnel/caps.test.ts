import { Socket } from "node:net"
import { make } from "@svc/tunnel-edge/edge/listening/ConnectionCaps"
import { clientBlock } from "@svc/tunnel-edge/edge/listening/Connections"
import { expect, it } from "vitest"

const from = (remoteAddress: string) => Object.defineProperty(new Socket(), "remoteAddress", { value: remoteAddress })

it("limits open connections per client and in total", () => {
  const caps = make({ perClient: 2, inAll: 3 })
  const [first, second] = [from("192.0.2.1"), from("::ffff:192.0.2.1")]
  expect([first, second, from("192.0.2.1")].map(caps.admit)).toEqual([true, true, false])
  expect([from("192.0.2.2"), from("192.0.2.3")].map(caps.admit)).toEqual([true, false])
  first.emit("close")
  expect(caps.admit(from("192.0.2.1"))).toBe(true)
  // A link does not count as a public connection, and releasing it twice does not free a second place.
  caps.release(second)
  second.emit("close")
  expect(caps.size()).toBe(2)
  expect([from("192.0.2.1"), from("192.0.2.1")].map(caps.admit)).toEqual([true, false])
})

it("frees one place of a client for each of its connections that closes", () => {
  const caps = make({ perClient: 3, inAll: 9 })
  const open = Array.from({ length: 3 }, () => from("192.0.2.1"))
  expect(open.map(caps.admit)).toEqual([true, true, true])
  open[0]!.emit("close")
  expect([from("192.0.2.1"), from("192.0.2.1")].map(caps.admit)).toEqual([true, false])
})

it("counts an IPv6 client by its /64", () => {
  expect(clientBlock("2001:db8:1:2:3:4:5:6")).toBe(clientBlock("2001:db8:1:2::9"))
  expect(clientBlock("2001:db8:1::9")).toBe("2001:db8:1:0")
  expect(clientBlock("::1")).toBe("0:0:0:0")
  expect(clientBlock("192.0.2.1")).toBe("192.0.2.1")
})
