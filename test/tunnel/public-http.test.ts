import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { reset } from "@svc/tunnel-edge/protocol/Manifest"
import type { Head } from "@svc/tunnel-edge/protocol/RequestHead"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { answering, forwardedGet, forwarding, get, make, ok } from "../harness/RecordedContext.ts"

describe("the route of a request", () => {
  it("is requested after the complete head while the client is paused, then everything is forwarded", () => {
    const { connection, client, did, route, streams, counted } = make({ host: "localhost:3000" })
    const text = get("/1") + get("/2", "X: y\r\n")
    client(text.slice(0, 20))
    expect([connection.state, did]).toEqual(["reading", []])
    client(text.slice(20))
    expect([connection.state, did]).toEqual(["routing", ["pause", "route /1"]])
    connection.routed(route)
    expect([connection.state, did]).toEqual(["forwarding", ["pause", "route /1", "open", "resume"]])
    const forwarded = forwardedGet("/1") + forwardedGet("/2", "X: y\r\n")
    expect(streams).toEqual([forwarded.replaceAll(/^Host: .*/gm, "Host: localhost:3000")])
    expect(counted).toEqual({ in: text.length, requests: 2, responses: [], isClosed: false, hasLeft: false })
    connection.closed()
    expect(counted.isClosed).toBe(true)
  })

  it("can end in a response of the edge, a full link or a disconnect of the client", () => {
    const answered = make()
    answered.client(get("/"))
    answered.connection.routed({ _tag: "Answer", bytes: Buffer.from("offline") })
    expect([answered.connection.state, answered.toClient()]).toEqual(["closing", "offline"])

    const full = make({ full: true })
    full.client(get("/"))
    full.connection.routed(full.route)
    expect([full.connection.state, full.toClient()]).toEqual(["closing", `failed / ${reset.overloaded}`])

    const closed = make()
    closed.client(get("/"))
    closed.connection.closed()
    closed.connection.routed(closed.route)
    expect([closed.connection.state, closed.streams]).toEqual(["closed", []])
  })

  it("waits for the next turn of the event loop when pipelined requests have used up this one", () => {
    let isSpent = true
    const { connection, client, did, streams } = forwarding({ isTurnSpent: () => isSpent })
    did.length = 0
    client(get("/2") + get("/3") + get("/4"))
    expect([did, streams]).toEqual([["pause", "nextTurn"], [forwardedGet("/1") + forwardedGet("/2")]])
    // The client has sent everything, and the agent receives the end of input after the last request.
    connection.ended()
    connection.turned()
    expect([did.splice(0), streams]).toEqual([
      ["pause", "nextTurn", "pause", "nextTurn"],
      [forwardedGet("/1") + forwardedGet("/2") + forwardedGet("/3")],
    ])
    isSpent = false
    connection.turned()
    expect([did.splice(0), streams]).toEqual([
      ["finish", "resume"],
      [["/1", "/2", "/3", "/4"].map((target) => forwardedGet(target)).join("")],
    ])
  })

  it("is not looked up for a Host that differs from the TLS server name", () => {
    const { client, did, toClient } = make({ client: { serverName: "b.example" } })
    client(get("/"))
    expect(did).toEqual(["discard", "end"])
    expect(toClient()).toMatch(/^HTTP\/1\.1 421 /)
    const same = make({ client: { serverName: "a.example" } })
    same.client(get("/"))
    expect(same.did).toEqual(["pause", "route /"])
  })

  it("becomes a link at the end of the turn, with the bytes behind its head", () => {
    const { connection, client, did, deadline } = make({ isLink: ({ target }) => target === "/link" })
    client(`${get("/link", "Connection: upgrade\r\n")}frames`)
    expect([connection.state, did]).toEqual(["linking", ["pause", "nextTurn"]])
    connection.turned()
    expect([connection.state, did.at(-1), deadline()]).toEqual(["closed", "handOver /link frames", undefined])
  })

  it("ends with a client that sends no complete head", () => {
    const { connection, client, did } = make()
    client("GET / HTT")
    connection.ended()
    expect([connection.state, did]).toEqual(["closing", ["end"]])
  })

  it("finds the same requests however the bytes arrive, and counts each", () => {
    const body = "0123456789".repeat(30)
    const text =
      get("/1") +
      `POST /2 HTTP/1.1\r\nHost: a.example\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
      `POST /3 HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n` +
      get("/4")
    const complete = forwarding({}, text)
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 9 }),
        fc.nat(9),
        (sizes, late) => {
          const one = make()
          let at = 0
          for (let n = 0; at < text.length; n++) {
            one.client(text.slice(at, at + sizes[n % sizes.length]!))
            at += sizes[n % sizes.length]!
            if (n === late) one.connection.routed(one.route)
          }
          if (one.connection.state === "routing") one.connection.routed(one.route)
          expect(one.streams).toEqual(complete.streams)
          expect(one.counted.requests).toBe(4)
        },
      ),
    )
  })
})

describe("a refusal", () => {
  const refused = Buffer.from("refused")
  const refuses = ({ target }: Head) => (target === "/no" ? refused : undefined)

  it("of a later request follows the earlier responses, and nothing after it is forwarded", () => {
    const { connection, client, agent, did, streams, toClient, deadline } = forwarding({ refuses })
    client(get("/2") + get("/no") + get("/3"))
    expect([connection.state, did, deadline()]).toEqual(["refusing", ["discard", "finish"], Timing.tailMillis])
    client(get("/4"))
    expect(streams).toEqual([forwardedGet("/1") + forwardedGet("/2")])
    agent(ok)
    agent(ok)
    connection.streamEnded()
    expect([connection.state, toClient()]).toEqual(["closing", `${ok}${ok}refused`])
  })

  it("of a malformed request follows the earlier responses", () => {
    const { connection, client, agent, toClient } = answering()
    client("nonsense\r\n\r\n")
    expect(connection.state).toBe("refusing")
    agent(ok)
    connection.streamEnded()
    expect(toClient()).toMatch(new RegExp(`^${ok}${ok}HTTP/1\\.1 400 `))
  })

  it("of the first request is the only response", () => {
    const { connection, client, toClient, deadline } = make()
    client("nonsense\r\n\r\n")
    expect([connection.state, deadline()]).toEqual(["closing", Timing.lingerMillis])
    expect(toClient()).toMatch(/^HTTP\/1\.1 400 /)
  })

  it("of a HEAD request has no body, whatever the earlier requests were", () => {
    const bytes = Buffer.from("HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nnever")
    const head = get("/no").replace("GET", "HEAD")
    for (const [first, body] of [
      [head, ""],
      [get("/no"), "never"],
    ] as const) {
      const { connection, client, toClient } = make()
      client(first)
      connection.routed({ _tag: "Answer", bytes })
      expect(toClient()).toBe(`HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\n${body}`)
    }
    for (const [later, body] of [
      [head, ""],
      [get("/no"), "never"],
    ] as const) {
      const { connection, client, agent, toClient } = forwarding({
        refuses: ({ target }) => (target === "/no" ? bytes : undefined),
      })
      client(get("/2") + later)
      agent(ok)
      agent(ok)
      connection.streamEnded()
      expect(toClient()).toBe(`${ok}${ok}HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\n${body}`)
    }
    const other = make({ client: { serverName: "b.example" } })
    other.client(head)
    expect(other.toClient()).toMatch(/^HTTP\/1\.1 421 [^]*\r\n\r\n$/)
  })

  it("within a body resets the agent's stream, and is sent only if no response has started", () => {
    const post = "POST /2 HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"
    const early = forwarding()
    early.client(post)
    expect([early.connection.state, early.did]).toEqual(["closing", [`reset ${reset.cancel}`, "discard", "end"]])
    expect(early.toClient()).toMatch(/^HTTP\/1\.1 400 /)
    const late = answering()
    late.did.length = 0
    late.client(post)
    expect([late.connection.state, late.did, late.toClient()]).toEqual([
      "closed",
      [`reset ${reset.cancel}`, "abort"],
      ok,
    ])
  })

  it("is not sent after the link failed in the same chunk", () => {
    let breaks = () => {}
    const one = forwarding({ refuses, onForward: () => breaks() })
    breaks = () => one.connection.streamReset(reset.overloaded)
    one.client(get("/2") + get("/no"))
    expect([one.connection.state, one.did]).toEqual(["closing", ["discard", "end"]])
    expect(one.toClient()).toBe(`failed /1 ${reset.overloaded}`)
  })

  it("that is pending is dropped at the client's deadline or the end of the agent's stream", () => {
    const late = answering({ refuses })
    late.client(get("/no"))
    late.connection.deadlinePassed()
    expect([late.connection.state, late.did.at(-1)]).toEqual(["closed", "destroy"])
    const cut = answering({ refuses })
    cut.client(get("/no"))
    cut.connection.streamReset(reset.link_lost)
    expect([cut.connection.state, cut.did.at(-1)]).toEqual(["closed", "abort"])
  })
})

it("is sent once, and nothing is written to a closed connection", () => {
  const event = fc.constantFrom(
    "request",
    "refused",
    "nonsense",
    "upgrade",
    "chunked",
    "end",
    "route",
    "offline",
    "answer",
    "switch",
    "fin",
    "not_here",
    "lost",
    "deadline",
    "idle",
    "turn",
    "cut",
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), fc.boolean(), fc.boolean(), (events, full, isSpent) => {
      const one = make({
        full,
        isTurnSpent: () => isSpent,
        refuses: ({ target }) => (target === "/no" ? Buffer.from("refused") : undefined),
      })
      const { connection, did } = one
      const isGone = () => did.some((what) => what === "destroy" || what === "abort")
      /** Delivers data from the agent as the multiplexer does: a stream that was reset or has ended delivers nothing. */
      let live = 0
      const fromAgent = (brings: () => void, ends: boolean) => {
        const resets = did.filter((what) => what.startsWith("reset")).length
        if (one.streams.length === live || resets > 0) return
        if (ends) live = one.streams.length
        brings()
      }
      const happen: Record<string, () => void> = {
        request: () => one.client(get("/1")),
        refused: () => one.client(get("/no")),
        nonsense: () => one.client("nonsense\r\n\r\n"),
        upgrade: () => one.client(get("/u", "Connection: upgrade\r\nUpgrade: websocket\r\n")),
        chunked: () => one.client("POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"),
        end: () => connection.ended(),
        route: () => connection.routed(one.route),
        offline: () => connection.routed({ _tag: "Answer", bytes: Buffer.from("offline") }),
        answer: () => fromAgent(() => one.agent(ok), false),
        switch: () => fromAgent(() => one.agent("HTTP/1.1 101 S\r\n\r\n"), false),
        fin: () => fromAgent(() => connection.streamEnded(), true),
        not_here: () => fromAgent(() => connection.streamReset(reset.not_here), true),
        lost: () => fromAgent(() => connection.streamReset(reset.link_lost), true),
        deadline: () => one.deadline() !== undefined && connection.deadlinePassed(),
        idle: () => one.idle() > 0 && connection.idled(),
        turn: () => connection.turned(),
        cut: () => one.cut(),
      }
      for (const what of events) {
        happen[what]!()
        if (isGone()) break
      }
      expect(did.filter((what) => what === "end").length).toBeLessThanOrEqual(1)
      if (!isGone()) return
      connection.closed()
      const before = did.length
      for (const what of ["request", "end", "route", "turn", "cut"]) happen[what]!()
      connection.deadlinePassed()
      expect(did.slice(before).filter((what) => what !== "destroy")).toEqual([])
    }),
    { numRuns: 2_000 },
  )
})
