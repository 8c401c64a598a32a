import { once } from "node:events"
import { type AddressInfo, connect, createServer } from "node:net"
import { describe, expect, it } from "vitest"
import * as ProxyHeader from "@svc/cluster/net/ProxyHeader"
import { readHeader } from "@svc/cluster/net/ProxiedSocket"

const signature = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
const binary = (versionAndCommand: number, family: number, body: ReadonlyArray<number>) =>
  Buffer.from([...signature, versionAndCommand, family, body.length >> 8, body.length & 255, ...body])
const v4 = [203, 0, 113, 7, 10, 0, 0, 1, 0x30, 0x39, 0x00, 0x19]
const v6 = [0x20, 0x01, 0x0d, 0xb8, ...Array(11).fill(0), 1, ...Array(15).fill(0), 2, 0x30, 0x39, 0x00, 0x19]

describe("A PROXY protocol header", () => {
  const cases: ReadonlyArray<readonly [string, Buffer, ReturnType<typeof ProxyHeader.read>]> = [
    [
      "of version 1 for IPv4",
      Buffer.from("PROXY TCP4 203.0.113.7 10.0.0.1 12345 25\r\n"),
      { length: 42, source: { address: "203.0.113.7", port: 12_345 } },
    ],
    [
      "of version 1 for IPv6",
      Buffer.from("PROXY TCP6 2001:db8::1 ::2 12345 25\r\n"),
      { length: 37, source: { address: "2001:db8::1", port: 12_345 } },
    ],
    ["of version 1 that knows nothing", Buffer.from("PROXY UNKNOWN\r\n"), { length: 15 }],
    ["of version 2 for IPv4", binary(0x21, 0x11, v4), { length: 28, source: { address: "203.0.113.7", port: 12_345 } }],
    [
      "of version 2 for IPv6, with an extension",
      binary(0x21, 0x21, [...v6, 0x04, 0x00, 0x01, 0x00]),
      { length: 56, source: { address: "2001:db8:0:0:0:0:0:1", port: 12_345 } },
    ],
    ["of version 2 for the balancer itself", binary(0x20, 0x00, []), { length: 16 }],
    [
      "of version 2 for IPv6",
      binary(0x21, 0x21, v6),
      { length: 52, source: { address: "2001:db8:0:0:0:0:0:1", port: 12_345 } },
    ],
    ["of version 2 for IPv6 with too few bytes", binary(0x21, 0x21, v6.slice(0, 35)), { length: 51 }],
    ["of version 2 for IPv4 with too few bytes", binary(0x21, 0x11, v4.slice(0, 11)), { length: 27 }],
    ["of version 2 for a UNIX socket", binary(0x21, 0x31, [...v6, ...v6]), { length: 88 }],
    ["of version 2 with the largest size", binary(0x20, 0x00, Array(2_048).fill(0)), { length: 2_064 }],
    ["of version 2 that is too large", binary(0x20, 0x00, Array(2_049).fill(0)), "invalid"],
    ["of version 2 with an unknown command", binary(0x22, 0x11, v4), "invalid"],
    [
      "of version 1 with the last port",
      Buffer.from("PROXY TCP4 203.0.113.7 10.0.0.1 65535 25\r\n"),
      { length: 42, source: { address: "203.0.113.7", port: 65_535 } },
    ],
    ["of version 1 with a port above it", Buffer.from("PROXY TCP4 203.0.113.7 10.0.0.1 65536 25\r\n"), "invalid"],
    ["of version 1 for another family", Buffer.from("PROXY UDP4 203.0.113.7 10.0.0.1 1 25\r\n"), "invalid"],
    ["of another version", binary(0x31, 0x11, v4), "invalid"],
    ["with an address of the other family", Buffer.from("PROXY TCP4 2001:db8::1 ::2 1 25\r\n"), "invalid"],
    ["with an invalid port", Buffer.from("PROXY TCP4 203.0.113.7 10.0.0.1 70000 25\r\n"), "invalid"],
    ["that never ends", Buffer.from(`PROXY TCP4 ${"1".repeat(120)}`), "invalid"],
    ["that does not end within 107 bytes", Buffer.from(`PROXY TCP4 ${"1".repeat(96)}`), "invalid"],
    ["of another protocol", Buffer.from("HELLO TCP4 203.0.113.7 10.0.0.1 12345 25\r\n"), "invalid"],
    ["without a PROXY header", Buffer.from("EHLO client.example.org\r\n"), "invalid"],
  ]
  for (const [what, bytes, expected] of cases) {
    it(`${what} is parsed in any number of pieces`, () => {
      expect(ProxyHeader.read(bytes)).toEqual(expected)
      expect(ProxyHeader.read(Buffer.concat([bytes, Buffer.from("EHLO x\r\n")]))).toEqual(expected)
      if (expected === "invalid") return
      for (let count = 0; count < bytes.length; count++) {
        expect(ProxyHeader.read(bytes.subarray(0, count))).toBe("incomplete")
      }
    })
  }

  it("that is cut off closes its connection immediately", async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => readHeader(socket, 3_600_000, () => {}))
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const socket = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true })
    socket.resume().end("PROXY TCP4 203.0.113.7")
    await once(socket, "end")
    socket.destroy()
    server.close()
  })
})
