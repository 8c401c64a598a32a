import { repeatableBytes } from "@svc/tunnel-edge/edge/http/ReplayBuffer"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { reset } from "@svc/tunnel-edge/protocol/Manifest"
import { describe, expect, it } from "vitest"
import { answering, forwardedGet, forwarding, get, make, ok } from "../harness/RecordedContext.ts"

describe("the count of responses", () => {
  it("has an error for each 5xx status, and for a response of the edge", () => {
    const { agent, client, counted } = forwarding()
    agent(ok)
    client(get("/2"))
    agent("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    expect(counted.responses).toEqual([false, true])
    const failed = forwarding()
    failed.connection.streamReset(reset.local_refused)
    expect(failed.counted.responses).toEqual([true])
  })

  it("ignores chunks within a response", () => {
    const { agent, counted } = forwarding()
    agent(ok.slice(0, 20))
    agent("500 is part of the body")
    expect(counted.responses).toEqual([false])
  })
})

describe("a failed route", () => {
  it("is replaced by another, over which all sent bytes are replayed", () => {
    const { connection, client, agent, did, route, streams, toClient } = forwarding()
    client("POST /2 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n01234")
    connection.streamReset(reset.not_here)
    expect([connection.state, did]).toEqual(["repeating", ["pause", "reroute /1"]])
    connection.routed(route)
    expect([connection.state, did.slice(2)]).toEqual(["forwarding", ["open", "resume"]])
    expect(streams[1]).toBe(streams[0])
    client("56789")
    agent(ok)
    expect(streams[1]).toBe(`${streams[0]}56789`)
    expect(toClient()).toBe(ok)
  })

  it("is the response if there is no other route or the second one fails too", () => {
    const none = forwarding()
    none.connection.streamReset(reset.not_here)
    none.connection.routed({ _tag: "Answer", bytes: Buffer.from("offline") })
    expect([none.connection.state, none.toClient()]).toEqual(["closing", "offline"])
    const twice = forwarding()
    twice.connection.streamReset(reset.not_here)
    twice.connection.routed(twice.route)
    twice.connection.streamReset(reset.not_here)
    expect([twice.connection.state, twice.toClient()]).toEqual(["closing", `failed /1 ${reset.not_here}`])
  })

  it.each([
    ["as long as may be repeated", 0, "repeating"],
    ["a byte longer", 1, "closing"],
  ])("with a request that is %s", (_, more, state) => {
    const { connection, client, streams } = forwarding(
      {},
      "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 99999\r\n\r\n",
    )
    client("x".repeat(repeatableBytes - streams[0]!.length + more))
    connection.streamReset(reset.not_here)
    expect(connection.state).toBe(state)
  })

  it("is not replayed for other reset codes or after a response has started", () => {
    const other = forwarding()
    other.connection.streamReset(reset.local_refused)
    expect([other.connection.state, other.toClient()]).toEqual(["closing", `failed /1 ${reset.local_refused}`])
    const late = answering()
    late.connection.streamReset(reset.not_here)
    expect([late.connection.state, late.did.at(-1)]).toEqual(["closed", "abort"])
  })

  it("keeps a pending refusal and the end of the client", () => {
    const refused = Buffer.from("refused")
    const one = forwarding({ refuses: ({ target }) => (target === "/no" ? refused : undefined) })
    one.client(get("/no"))
    one.connection.streamReset(reset.not_here)
    one.connection.routed(one.route)
    expect([one.connection.state, one.did.slice(-4)]).toEqual(["refusing", ["open", "resume", "discard", "finish"]])
    one.agent(ok)
    one.connection.streamEnded()
    expect(one.toClient()).toBe(`${ok}refused`)

    const ended = forwarding()
    ended.connection.ended()
    ended.connection.streamReset(reset.not_here)
    ended.connection.routed(ended.route)
    expect(ended.did.slice(-3)).toEqual(["open", "resume", "finish"])
  })
})

describe("a connection that ends while the signature of a further request is verified", () => {
  it.each([undefined, Buffer.from("refused")])("stays closed (%s)", async (found) => {
    const { connection, client, did, streams, deadline } = forwarding({ callerOf: async () => found })
    client(get("/2", "Signature-Input: x\r\n"))
    connection.closed()
    const before = [...did, ...streams]
    await new Promise<void>((resolve) => setImmediate(resolve))
    expect([connection.state, [...did, ...streams], deadline()]).toEqual(["closed", before, undefined])
  })
})

describe("deadlines", () => {
  it("limit the head, the first response byte and later silence", () => {
    const one = make()
    expect(one.deadline()).toBe(Timing.headMillis)
    one.client(get("/1"))
    expect(one.deadline()).toBeUndefined()
    one.connection.routed(one.route)
    expect([one.deadline(), one.idle()]).toEqual([Timing.firstByteMillis, 0])
    one.agent(ok)
    expect([one.deadline(), one.idle()]).toEqual([undefined, Timing.idleMillis])
    one.connection.idled()
    expect([one.connection.state, one.did.at(-1)]).toEqual(["closed", "destroy"])
  })

  it("close a connection without a complete head silently", () => {
    const { connection, client, did } = make()
    client("GET / HTTP/1.1\r\nX: ")
    connection.deadlinePassed()
    expect([connection.state, did]).toEqual(["closed", ["destroy"]])
  })

  it("end the wait for a response with a response of the edge, also on a second route", () => {
    const one = forwarding()
    one.connection.deadlinePassed()
    expect(one.did).toEqual([`reset ${reset.local_timeout}`, "discard", "end"])
    expect([one.connection.state, one.toClient()]).toEqual(["closing", `failed /1 ${reset.local_timeout}`])
    const other = forwarding()
    other.connection.streamReset(reset.not_here)
    other.connection.deadlinePassed()
    expect(other.toClient()).toBe(`failed /1 ${reset.local_timeout}`)
    other.connection.routed(other.route)
    expect([other.connection.state, other.streams.length]).toEqual(["closing", 1])
  })

  it("limit the time for the last bytes", () => {
    const one = forwarding()
    one.connection.streamReset(reset.local_refused)
    expect(one.deadline()).toBe(Timing.lingerMillis)
    one.connection.deadlinePassed()
    expect(one.did.slice(-2)).toEqual(["end", "destroy"])
    one.connection.closed()
    expect(one.deadline()).toBeUndefined()
  })
})

describe("an upgrade", () => {
  const ask = get("/socket", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
  const hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
  const switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

  it("makes the connection opaque and removes the idle limit when the agent accepts it", () => {
    const { connection, client, agent, did, streams, idle } = forwarding({}, ask)
    const head = streams[0]!
    client("\u0001 not HTTP\n\n")
    expect(streams[0]).toBe(head)
    agent(hints)
    expect([connection.state, did]).toEqual(["answering", []])
    agent(switching.slice(0, 10))
    agent(switching.slice(10))
    expect([connection.state, did, idle()]).toEqual(["upgraded", ["upgraded", "nextTurn"], 0])
    connection.turned()
    client("more")
    expect(streams[0]).toBe(`${head}\u0001 not HTTP\n\nmore`)
  })

  it("is handled like any other request when the agent declines it, and the next request proceeds", () => {
    const { connection, client, agent, did, streams, idle } = forwarding({}, ask)
    client(get("/2"))
    agent(ok)
    expect([connection.state, did, idle()]).toEqual(["answering", ["nextTurn"], Timing.idleMillis])
    connection.turned()
    expect(streams[0]).toContain(forwardedGet("/2"))
  })

  it("limits the bytes before its response and refuses malformed requests after a declined one", () => {
    const eager = forwarding({}, ask)
    eager.client("x".repeat(20_000))
    expect([eager.connection.state, eager.did[0]]).toEqual(["closing", `reset ${reset.cancel}`])
    expect(eager.toClient()).toMatch(/^HTTP\/1\.1 400 /)
    const nonsense = forwarding({}, ask)
    nonsense.client("nonsense\r\n\r\n")
    nonsense.agent(ok)
    nonsense.connection.turned()
    nonsense.connection.streamEnded()
    expect(nonsense.toClient()).toMatch(new RegExp(`^${ok}HTTP/1\\.1 400 `))
  })
})

describe("an exhausted transfer budget", () => {
  it("ends the request, with a problem if no response has started", () => {
    const early = forwarding()
    early.cut()
    expect(early.did).toEqual([`reset ${reset.quota}`, "discard", "end"])
    expect(early.toClient()).toBe(`failed /1 ${reset.quota}`)
    const late = answering()
    late.cut()
    expect([late.connection.state, late.did.slice(-2)]).toEqual(["closed", [`reset ${reset.quota}`, "abort"]])
  })
})

describe("the end of the agent's stream", () => {
  it("lets the client keep sending", () => {
    const { connection, client, did, streams } = answering()
    connection.streamEnded()
    expect([connection.state, did.at(-1)]).toEqual(["answered", "end"])
    client(get("/2"))
    expect(streams[0]).toBe(forwardedGet("/1") + forwardedGet("/2"))
  })

  it("without a response closes the connection silently", () => {
    const { connection, did, toClient } = forwarding()
    connection.streamEnded()
    connection.deadlinePassed()
    expect([connection.state, did, toClient()]).toEqual(["closed", ["end", "destroy"], ""])
  })
})

describe("changed settings", () => {
  const shutOut = () => {
    let open = true
    const setting = { allows: () => open, refuses: () => (open ? undefined : Buffer.from("refused")) }
    return { setting, shut: () => (open = false), reopen: () => (open = true) }
  }

  it("close an upgraded connection immediately, even during the upgrade", () => {
    const ask = get("/socket", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
    const switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    const now = shutOut()
    const open = forwarding(now.setting, ask)
    open.agent(switching)
    open.changed()
    expect(open.connection.state).toBe("upgraded")
    now.shut()
    open.changed()
    expect([open.connection.state, open.did.slice(-2)]).toEqual(["closed", [`reset ${reset.policy}`, "abort"]])
    const early = shutOut()
    const waiting = forwarding(early.setting, ask)
    early.shut()
    waiting.changed()
    waiting.agent(switching)
    expect(waiting.connection.state).toBe("closed")
  })

  it("refuse the next request and give the current response a deadline", () => {
    const now = shutOut()
    const one = answering(now.setting)
    now.shut()
    one.changed()
    expect([one.connection.state, one.deadline()]).toEqual(["answering", Timing.tailMillis])
    now.reopen()
    one.changed()
    expect(one.deadline()).toBeUndefined()
    now.shut()
    one.changed()
    one.client(get("/2"))
    expect(one.connection.state).toBe("refusing")
    one.connection.streamEnded()
    expect(one.toClient()).toBe(`${ok}refused`)

    const late = shutOut()
    const waiting = forwarding(late.setting)
    late.shut()
    waiting.changed()
    expect(waiting.deadline()).toBe(Timing.firstByteMillis)
    waiting.agent(ok)
    expect(waiting.deadline()).toBe(Timing.tailMillis)
    waiting.connection.deadlinePassed()
    expect([waiting.connection.state, waiting.did.at(-1)]).toEqual(["closed", "abort"])
    waiting.connection.closed()
    expect(waiting.counted.hasLeft).toBe(true)
  })
})

describe("an agent that shuts down", () => {
  it("closes the connection with its next response", () => {
    let leaving = false
    const { client, streams } = answering({ isLeaving: () => leaving })
    client(get("/2"))
    leaving = true
    client(get("/3"))
    const [, second, third] = streams[0]!.split(/(?=GET )/)
    expect(second).not.toContain("Connection")
    expect(third).toContain("\r\nConnection: close\r\n")
  })
})
