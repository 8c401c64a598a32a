import { encode, type Head, limits, Refusal } from "@svc/tunnel-edge/protocol/RequestHead"
import { RequestSplitter } from "@svc/tunnel-edge/protocol/RequestSplitter"
import { UpgradeResponse } from "@svc/tunnel-edge/edge/http/UpgradeResponse"
import { describe, expect, it } from "vitest"

/** Returns the forwarded bytes, and the status with which the input was rejected. */
const pass = (text: string, host?: string, each = 1) => {
  const out: Array<string> = []
  const heads: Array<Head> = []
  const splitter = new RequestSplitter(
    (head) => {
      heads.push(head)
      const forwarded = { client: "192.0.2.1", proto: "http", host, ownAuthorization: false, isLast: false } as const
      out.push(encode(head, forwarded).toString("latin1"))
    },
    (bytes) => out.push(bytes.toString("latin1")),
  )
  let status: number | undefined
  try {
    // Passes single bytes by default, so that no limit depends on the size of a chunk.
    for (let at = 0; at < text.length; at += each) splitter.feed(Buffer.from(text.slice(at, at + each), "latin1"))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    status = error.status
  }
  return { text: out.join(""), status, heads }
}
const ours = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a.example\r\n\r\n"
const get = (fields: string, target = "/", host = "a.example") =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`

describe("a request head", () => {
  it("loses hop-by-hop fields and fields of the edge", () => {
    const { text } = pass(
      get(
        [
          "X-One: 1",
          "Connection: close, X-Hop, keep-alive",
          "X-Hop: secret",
          "x-hop: again",
          "Proxy-Authorization: Basic c2VjcmV0",
          "Proxy-Connection: keep-alive",
          "Keep-Alive: timeout=5",
          "Forwarded: for=1.2.3.4",
          "X-Real-IP: 1.2.3.4",
          "SVC-Tunnel-Handle: x",
          "X_Forwarded_For: 1.2.3.4",
          "X-Real_IP: 1.2.3.4",
          "svc_tunnel_handle: x",
          "X-Two: 2",
          "",
        ].join("\r\n"),
      ),
    )
    expect(text).toBe(`GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nX-One: 1\r\nX-Two: 2\r\n${ours}`)
  })

  it("may contain TE, which is not forwarded", () => {
    for (const fields of [
      "TE: trailers\r\nConnection: TE\r\n",
      "Connection: te, Upgrade-Insecure-Requests\r\nUpgrade-Insecure-Requests: 1\r\n",
    ]) {
      expect(pass(get(fields))).toMatchObject({
        status: undefined,
        text: `GET / HTTP/1.1\r\nHost: a.example\r\n${ours}`,
      })
    }
  })

  it.each([
    ["the root's dot", "/", "a.example."],
    ["the dot and a port", "/", "A.example.:8081"],
    ["its default port in the target", "http://a.example:80/x", "a.example"],
    ["its default port in Host", "http://a.example/x", "a.example:80"],
    ["the default port of TLS", "https://A.EXAMPLE:443", "a.example"],
    ["another port in both", "http://a.example:8081/", "a.example:8081"],
  ])("accepts a host with %s", (_, target, host) => {
    const { status, heads, text } = pass(get("", target, host))
    expect([status, heads[0]?.host]).toEqual([undefined, "a.example"])
    expect(text).toContain(`\r\nHost: ${host}\r\n`)
  })

  it.each([
    ["another host in the target", "http://b.example/", "a.example"],
    ["another port in the target", "http://a.example:81/", "a.example"],
    ["the port of the other scheme", "https://a.example:80/", "a.example"],
    ["a user in the target", "http://u@a.example/", "a.example"],
    ["two dots", "/", "a.example.."],
    ["a dot alone", "/", "."],
  ])("is refused with %s", (_, target, host) => {
    expect(pass(get("", target, host)).status).toBe(400)
  })

  it("may follow a few empty lines", () => {
    const two = `\r\n\r\n${get("")}\r\n${get("")}`
    expect(pass(two)).toMatchObject({ status: undefined, heads: [{}, {}] })
    const four = `${"\r\n".repeat(4)}${get("")}`
    expect(pass(four + four)).toMatchObject({ status: undefined, heads: [{}, {}] })
    expect(pass(`${"\r\n".repeat(5)}${get("")}`).status).toBe(400)
    expect(pass(`\r${get("")}`).status).toBe(400)
    expect(pass(`\n${get("")}`).status).toBe(400)
  })

  it("can only request an upgrade to a WebSocket", () => {
    const socket = pass(get("Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n"))
    expect(socket.heads[0]!.upgrade).toBe(true)
    expect(socket.text).toContain("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n")
    for (const fields of [
      "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n",
      "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n",
      "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
      "Upgrade: websocket\r\n",
      "Connection: Upgrade\r\n",
    ]) {
      const { text, heads } = pass(get(fields))
      expect([heads[0]!.upgrade, text]).toEqual([false, `GET / HTTP/1.1\r\nHost: a.example\r\n${ours}`])
    }
  })

  it("must keep the Host of the first request on its connection", () => {
    expect(pass(get("") + get("", "/", "b.example")).status).toBe(421)
    expect(pass(get("") + get("", "/", "A.EXAMPLE.:80")).status).toBe(undefined)
  })

  it("has at most 16 KiB, wherever it begins in the bytes that arrive", () => {
    const before = `POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 20000\r\n\r\n${"x".repeat(20_000)}`
    const head = (bytes: number) => {
      const start = "GET / HTTP/1.1\r\nHost: a.example\r\nX: "
      return `${start.padEnd(bytes, "x")}\r\n\r\n`
    }
    for (const each of [15_000, 30_000, 100_000]) {
      const all = pass(before + head(limits.headBytes) + get(""), undefined, each)
      expect([all.status, all.heads.length], `${each}`).toEqual([undefined, 3])
      expect(pass(before + head(limits.headBytes + 1), undefined, each).status).toBe(431)
    }
  })

  it("keeps the position of a replaced Host", () => {
    expect(pass(get("X: y\r\n"), "localhost:3000").text).toBe(
      `GET / HTTP/1.1\r\nHost: localhost:3000\r\nX: y\r\n${ours}`,
    )
  })
})

describe("a chunked body", () => {
  const chunked = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
  const post = (body: string) => pass(`${chunked}${body}`)
  const bodyOf = ({ text }: { readonly text: string }) => text.slice(text.indexOf("\r\n\r\n") + 4)

  it.each([
    ["what is not its end", "3\r\nabcXX0\r\n\r\n"],
    ["a bare LF", "3\r\nabc\n0\r\n\r\n"],
    ["more than it says", "3\r\nabcd\r\n0\r\n\r\n"],
    ["less than it says", "4\r\nabc\r\n0\r\n\r\n"],
    ["a bare LF behind its size", "3\nabc\r\n0\r\n\r\n"],
    ["an extension", "3;x\r\nabc\r\n0\r\n\r\n"],
    ["a trailer without a name", "0\r\n: x\r\n\r\n"],
    ["a trailer with a bare CR", "0\r\nX: a\rb\r\n\r\n"],
    ["a trailer with NUL", "0\r\nX: a\0\r\n\r\n"],
    ["a trailer with another character in its name", "0\r\n(X: a\r\n\r\n"],
    ["a folded trailer", "0\r\nX: a\r\n b: c\r\n\r\n"],
  ])("is refused with %s", (_, body) => {
    expect(post(body).status).toBe(400)
  })

  it("has at most 16 KiB of trailers, wherever they begin in the bytes that arrive", () => {
    const line = (length: number) => `${"X: ".padEnd(length - 1, "x")}\r\n`
    /** Trailers of this many bytes, without line feeds and including the empty line. */
    const body = (bytes: number) => `1\r\na\r\n0\r\n${line(1_024).repeat(15)}${line(bytes - 15 * 1_024 - 1)}\r\n`
    for (const each of [1_000, 100_000]) {
      const two = `${chunked}${body(limits.headBytes)}`.repeat(2)
      expect(pass(two, undefined, each)).toMatchObject({ status: undefined, heads: [{}, {}] })
      expect(pass(`${chunked}${body(limits.headBytes + 1)}`, undefined, each).status).toBe(431)
    }
  })

  it("keeps trailers except for framing, routing and authentication", () => {
    const trailers = [
      "X-Sum: 1",
      "Content-Length: 5",
      "transfer-encoding: chunked",
      "Host: b.example",
      "Authorization: Bearer x",
      "Proxy-Authorization: x",
      "Cookie: a=b",
      "X-Forwarded-For: 1.2.3.4",
      "Forwarded: for=1.2.3.4",
      "svc-tunnel-handle: x",
      "X_Forwarded-For: 1.2.3.4",
      "Content_Length: 5",
      "Connection: close",
      "X: 2",
    ]
    const passed = post(`3\r\nabc\r\n0\r\n${trailers.join("\r\n")}\r\n\r\n${get("")}`)
    expect(passed.status).toBe(undefined)
    expect(bodyOf(passed)).toMatch(/^3\r\nabc\r\n0\r\nX-Sum: 1\r\nX: 2\r\n\r\nGET \/ HTTP/)
  })
})

describe("an upgrade", () => {
  const request = get("Connection: Upgrade\r\nUpgrade: websocket\r\n")
  const asked = () => {
    const out: Array<string> = []
    const targets: Array<string> = []
    const splitter = new RequestSplitter(
      ({ target }) => void targets.push(target),
      (bytes) => void out.push(bytes.toString("latin1")),
    )
    splitter.feed(Buffer.from(request))
    return {
      splitter,
      out: () => out.splice(0).join(""),
      targets,
      feed: (text: string) => splitter.feed(Buffer.from(text)),
    }
  }

  it("passes every byte unread after the agent accepted it, in order", () => {
    const { splitter, out, targets, feed } = asked()
    feed("first\r\n\r\n")
    expect(out()).toBe("")
    splitter.hold()
    splitter.upgraded(true)
    feed(get(""))
    expect([out(), splitter.isBetween]).toEqual(["", false])
    splitter.release()
    expect(out()).toBe(`first\r\n\r\n${get("")}`)
    feed("\0 second")
    expect([out(), targets]).toEqual(["\0 second", ["/"]])
    // A late refusal changes nothing.
    splitter.upgraded(false)
    feed("third")
    expect(out()).toBe("third")
  })

  it("is followed by requests after the agent refused it", () => {
    const { splitter, out, targets, feed } = asked()
    feed(get("", "/next").slice(0, 9))
    splitter.upgraded(false)
    feed(get("", "/next").slice(9))
    expect([out(), targets]).toEqual(["", ["/", "/next"]])
  })

  it.each<[string, ReadonlyArray<string>, ReadonlyArray<boolean | undefined>]>([
    ["accepted", ["HTTP/1.1 10", "1 "], [undefined, true]],
    ["accepted by HTTP/1.0", ["HTTP/1.0 101"], [true]],
    ["refused", ["HTTP/1.1 200"], [false]],
    [
      "accepted after an interim response in pieces",
      ["HTTP/1.1 103 E\r\nLink: x", "\r\n\r", "\nHTTP/1.1 101"],
      [undefined, undefined, true],
    ],
    ["refused after two interim responses", ["HTTP/1.1 100\r\n\r\nHTTP/1.1 103\r\n\r\nHTTP/1.1 403"], [false]],
    ["refused by 64 KiB without a status", ["x".repeat(65_535), "x"], [undefined, false]],
  ])("is judged by the response of the agent: %s", (_, pieces, results) => {
    const response = new UpgradeResponse()
    expect(pieces.map((piece) => response.feed(Buffer.from(piece)))).toEqual(results)
  })
})

describe("white space around a value", () => {
  it("is not part of it", () => {
    const post = "POST / HTTP/1.1\r\nHost: \t a.example \t\r\nAuthorization:\t x y \r\n"
    const { text, heads, status } = pass(`${post}Content-Length: 3 \t\r\n\r\nabc${get("")}`)
    expect([status, heads.map(({ host }) => host)]).toEqual([undefined, ["a.example", "a.example"]])
    expect(text).toMatch(/^POST \/ HTTP\/1\.1\r\nHost: a\.example\r\nAuthorization: x y\r\n/)
    const chunked = pass(`${post}Transfer-Encoding:chunked\t\r\n\r\n0\r\n\r\n${get("")}`)
    expect([chunked.status, chunked.heads.length]).toEqual([undefined, 2])
    expect(pass(get("Content-Length: 3 4\r\n")).status).toBe(400)
    const { headers } = pass(get("X-One:a\r\nX-Two: \tb \r\nX-ONE: c\r\n")).heads[0]!
    expect([...headers]).toEqual([
      ["host", "a.example"],
      ["x-one", "a, c"],
      ["x-two", "b"],
    ])
  })
})
