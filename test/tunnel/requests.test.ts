/** Requests that the edge answers itself, and the settings with which it forwards the others. Its dependencies are in memory. */
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { RateLimited, Unavailable } from "@svc/domain/problems/Problem"
import type { TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { clockSkewSeconds } from "@svc/cluster/proof/AgentRequests"
import { signatureSeconds } from "@svc/domain/proof/RequestSignature"
import { makeMemory } from "@svc/tunnel-edge/edge/routing/Callers"
import * as PasswordThrottle from "@svc/tunnel-edge/edge/routing/PasswordThrottle"
import type { Client } from "@svc/tunnel-edge/edge/http/ConnectionContext"
import { reset } from "@svc/tunnel-edge/protocol/Manifest"
import { Effect } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { basic, card, headOf, origin, sha256, signature, signedHead, tunnel } from "./EdgeRequests.ts"

afterEach(() => void vi.useRealTimers())

describe("a request for a Tunnel", () => {
  it("is answered by the edge if no Identity has the name, or if the look-up fails", async () => {
    const { got, did, state, route } = await tunnel()
    expect(await got(headOf("/", {}, "GET", "other.example"))).toEqual([404, "tunnel_not_found"])
    expect(did()).toEqual([])
    expect(await got(headOf("/", {}, "GET", "bob.tunnel.example"))).toEqual([404, "tunnel_not_found"])
    expect(did()).toEqual(["look bob"])
    expect(await got(headOf("/", {}, "GET", "A-da.tunnel.example"))).toEqual(["forwarded", undefined])
    expect(did()).toEqual(["look ada", "budget of org", "find ada"])
    const found = await route()
    expect(found._tag === "Stream" && found.openMeter(() => {})).toEqual({ org: "org", identity: "identity" })
    state.fails = true
    expect(await got()).toEqual([503, "unavailable", 5])
  })

  it("is refused to clients outside the allowed networks, of both versions of IP", async () => {
    const { got, did } = await tunnel({ allowed_networks: ["192.0.2.0/24", "2001:db8::/32"] })
    for (const address of ["192.0.2.1", "192.0.2.255", "2001:db8::1", "2001:db8:ffff::1"])
      expect([address, await got(headOf(), address)]).toEqual([address, ["forwarded", undefined]])
    did()
    for (const address of ["192.0.3.0", "2001:db9::1", "::1"])
      expect([address, await got(headOf(), address)]).toEqual([
        address,
        [403, "This tunnel is not open to your address."],
      ])
    expect(did().filter((what) => what !== "look ada")).toEqual([])
  })

  it("needs the password; ten wrong ones block its client for a minute, and nobody else", async () => {
    vi.useFakeTimers({ toFake: ["Date"] })
    const { got, route, state, standingOf } = await tunnel({}, { passwordHash: sha256("ada:x") })
    const [right, wrong] = [headOf("/", basic("ada:x")), headOf("/", basic("ada:y"))]
    const asked = [401, "This tunnel asks for a user name and a password."]
    const refused = await route(wrong)
    expect(refused._tag === "Answer" && refused.bytes.toString()).toContain(
      'www-authenticate: Basic realm="Ada", charset="UTF-8"\r\n',
    )
    expect(await got(right)).toEqual(["forwarded", undefined])
    // A request without a password is no guess.
    for (let n = 0; n < 20; n++) expect(await got(headOf())).toEqual(asked)
    for (let n = 0; n < 9; n++) expect(await got(wrong)).toEqual(asked)
    vi.advanceTimersByTime(1_500)
    for (const head of [right, wrong]) expect(await got(head)).toEqual([429, "rate_limited", 59])
    expect(await got(headOf())).toEqual(asked)
    expect(await got(right, "192.0.2.2")).toEqual(["forwarded", undefined])
    // Guesses count per Identity, and per /64 of IPv6.
    const mine = state.standing
    state.standing = standingOf({}, { passwordHash: sha256("ada:x"), identityId: "other" })
    expect(await got(right)).toEqual(["forwarded", undefined])
    state.standing = mine
    for (let n = 0; n < 10; n++) await got(wrong, `2001:db8::${n}`)
    expect(await got(right, "2001:db8::ffff")).toEqual([429, "rate_limited", 60])
    expect(await got(right, "2001:db8:0:1::1")).toEqual(["forwarded", undefined])
    vi.advanceTimersByTime(58_500)
    expect(await got(right)).toEqual(["forwarded", undefined])
  })

  it("is refused while the transfer of the day is used up, with the password as without it", async () => {
    const { got, state, standingOf } = await tunnel()
    state.blocked = 1_001
    expect(await got()).toEqual([429, "tunnel_transfer_blocked", 2])
    state.standing = standingOf({}, { passwordHash: sha256("ada:x") })
    expect(await got(headOf("/", basic("ada:x")))).toEqual([429, "tunnel_transfer_blocked", 2])
    state.blocked = 0
    expect(await got(headOf("/", basic("ada:x")))).toEqual(["forwarded", undefined])
  })

  it("gets the card of an agent that is offline, and counts as a failed request otherwise", async () => {
    const { got, did, state, route, standingOf } = await tunnel()
    state.way = undefined
    const at = "/.well-known/agent-card.json"
    expect(await got(headOf(at))).toEqual([503, "tunnel_agent_offline", 5])
    expect(did()).toContain("offline identity")
    state.card = { fields: card, version: 1, signature: null }
    const found = await route(headOf(`${at}?x=1`))
    const text = found._tag === "Answer" ? found.bytes.toString() : ""
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*access-control-allow-origin: \*\r\n/)
    const shownCard = JSON.parse(text.split("\r\n\r\n")[1]!)
    expect([shownCard.name, "securitySchemes" in shownCard]).toEqual(["Ada", false])
    expect(did()).not.toContain("offline identity")
    for (const other of [headOf(at, {}, "POST"), headOf(`${at}/x`), headOf("/")]) {
      expect(await got(other)).toEqual([503, "tunnel_agent_offline", 5])
      expect(did()).toContain("offline identity")
    }
    // The card says that the Tunnel needs a password.
    state.standing = standingOf({}, { passwordHash: sha256("ada:x") })
    const locked = await route(headOf(at, basic("ada:x")))
    expect(locked._tag === "Answer" && locked.bytes.toString()).toContain('"securitySchemes"')
    state.card = { fields: { nonsense: true }, version: 1, signature: null }
    expect(await got(headOf(at, basic("ada:x")))).toEqual([503, "tunnel_agent_offline", 5])
  })

  it("for a document of the Identity is answered whatever the settings, within its own limit", async () => {
    const { got, did, state, route } = await tunnel({ allowed_networks: ["198.51.100.0/24"], callers: "signed" })
    const path = "/.well-known/http-message-signatures-directory"
    const full = await route(headOf(`${path}?x`), { address: "2001:db8:1:2:3::" })
    expect(did()).toEqual(["look ada", "limit profile 2001:db8:1:2", `read ${path}`])
    const head = (bytes: string) => bytes.split("\r\n\r\n")[0]!.split("\r\n").toSorted()
    const text = full._tag === "Answer" ? full.bytes.toString() : ""
    expect(text.split("\r\n\r\n")[1]).toBe("grüße")
    expect(head(text)).toEqual(
      [
        "HTTP/1.1 200 OK",
        'etag: "1"',
        "content-type: text/x",
        "content-length: 7",
        "cache-control: public, max-age=0, must-revalidate",
        "access-control-allow-origin: *",
        "x-content-type-options: nosniff",
        "connection: close",
      ].toSorted(),
    )
    const short = await route(headOf(path, {}, "HEAD"))
    expect(short).toEqual(full)
    expect(await got(headOf(path, {}, "POST"))).toEqual([403, "This tunnel is not open to your address."])
    state.document = Effect.succeed(undefined)
    expect(await got(headOf(path))).toEqual([404, "tunnel_not_found"])
    state.document = Effect.fail(new Unavailable({ detail: "down" }))
    expect(await got(headOf(path))).toEqual([503, "unavailable", 5])
    did()
    state.limit = Effect.fail(new RateLimited({ detail: "no", retry_after_seconds: 17 }))
    expect(await got(headOf(path))).toEqual([429, "rate_limited", 17])
    expect(did()).toEqual(["look ada", "limit profile 192.0.2.1"])
  })

  it("that is signed is judged again if the settings change while its signature is verified", async () => {
    const { got, state, standingOf, route } = await tunnel({ callers: "signed" })
    expect(await got(headOf())).toMatchObject([
      401,
      "This tunnel asks for requests that are signed by an agent (Web Bot Auth).",
    ])
    expect(await got(signedHead())).toEqual(["forwarded", origin])
    const found = await route(signedHead())
    expect(found._tag === "Stream" && found.caller).toEqual({ origin, handle: "eve" })
    const change = (over: Partial<TunnelSettings>, more: Partial<Standing> = {}) => {
      state.standing = standingOf({ callers: "signed" })
      state.verifying = () => (state.standing = standingOf(over, more))
    }
    change({ callers: [origin] })
    expect(await got(signedHead())).toEqual(["forwarded", origin])
    change({ callers: ["eve"] })
    expect(await got(signedHead())).toEqual(["forwarded", origin])
    change({ callers: ["https://other.example"] })
    expect(await got(signedHead())).toEqual([401, `This tunnel is not open to ${origin}.`])
    change({ allowed_networks: ["198.51.100.0/24"] })
    expect(await got(signedHead())).toEqual([403, "This tunnel is not open to your address."])
    change({}, { passwordHash: sha256("ada:x") })
    expect(await got(signedHead())).toEqual([401, "This tunnel asks for a user name and a password."])
    state.standing = standingOf({ callers: "signed" })
    state.verifying = () => (state.standing = undefined)
    expect(await got(signedHead())).toEqual([404, "tunnel_not_found"])
  })

  it("that is signed is refused if it comes again or its keys cannot be read, unless anyone may call", async () => {
    const { got, state, standingOf } = await tunnel({ callers: "signed" })
    const head = () => judgeAgain
    const judgeAgain = signedHead()
    expect(await got(head())).toEqual(["forwarded", origin])
    // The same head is routed a second time after its first route failed; a copy of it is a repeated request.
    expect(await got(head())).toEqual(["forwarded", origin])
    const fields = { "signature-agent": "", "signature-input": "", signature: "" }
    for (const name of Object.keys(fields) as Array<keyof typeof fields>) fields[name] = judgeAgain.headers.get(name)!
    expect(await got(headOf("/", fields))).toEqual([401, "This request was received before. Sign each request anew."])
    expect(await got(headOf("/other", signature()))).toEqual([401, "The signature does not belong to this request."])
    // Production reads no keys over plain HTTP.
    const plain = headOf("/", signature(origin.replace("https:", "http:")))
    expect(await got(plain)).toMatchObject([401, expect.stringContaining("http")])
    state.busy = true
    expect(await got(signedHead())).toEqual([503, "Too many keys are read.", 5])
    state.busy = false
    state.verifying = () => {
      throw new Error("a defect")
    }
    expect(await got(signedHead())).toEqual([503, "The signature could not be verified. Try again.", 5])
    state.standing = standingOf({})
    expect(await got(signedHead())).toEqual(["forwarded", undefined])
    state.verifying = () => {}
    expect(await got(headOf("/", fields))).toEqual([401, "This request was received before. Sign each request anew."])
  })
})

describe("the settings of an open connection", () => {
  it("name the Host that the agent receives, and whether the password is for the edge", async () => {
    const { state, terms, standingOf, did } = await tunnel()
    const { terms: mine } = await terms()
    const host = (over: Partial<TunnelSettings>) => ((state.standing = standingOf(over)), mine.host())
    expect([host({}), host({ host_header: "local" }), host({ host_header: "x.example" })]).toEqual([
      undefined,
      "localhost:3000",
      "x.example",
    ])
    expect(mine.ownAuthorization()).toBe(false)
    state.standing = standingOf({}, { passwordHash: sha256("ada:x") })
    expect(mine.ownAuthorization()).toBe(true)
    // The Identity is gone: the settings at the start hold for the requests in flight.
    state.standing = undefined
    expect([mine.host(), mine.ownAuthorization(), mine.allows(undefined, undefined)]).toEqual([undefined, false, false])
    mine.leave()
    expect(did().at(-1)).toBe("close")
    state.standing = standingOf({ host_header: "local" })
    state.way = { open: () => undefined, isLeaving: () => false, localHost: null }
    expect((await terms()).terms.host()).toBeUndefined()
  })

  it("refuse its further requests, and answer documents whatever they say", async () => {
    const { state, terms, shown, standingOf } = await tunnel()
    const { terms: mine } = await terms()
    const path = "/.well-known/http-message-signatures-directory"
    const refused = async (head = headOf()) => {
      const bytes = await mine.refuses(head)
      return bytes && shown(bytes)
    }
    expect(await refused()).toBeUndefined()
    expect(await refused(headOf(path))).toEqual([200, "grüße"])
    state.document = Effect.die("a defect")
    expect(await refused(headOf(path))).toEqual([503, "unavailable", 5])
    state.standing = standingOf({ allowed_networks: ["198.51.100.0/24"] })
    expect(await refused()).toEqual([403, "This tunnel is not open to your address."])
    expect(mine.allows(undefined, undefined)).toBe(false)
    state.standing = undefined
    expect(await refused()).toEqual([404, "tunnel_not_found"])
    expect(await refused(headOf(path))).toEqual([404, "tunnel_not_found"])
  })

  it("admit the client of the last request only with its password and its caller", async () => {
    const { state, terms, standingOf } = await tunnel()
    const { terms: mine } = await terms()
    const { authorization } = basic("ada:x")
    const caller = { origin, handle: undefined }
    const allowed = (over: Partial<TunnelSettings>, more: Partial<Standing> = {}) => {
      state.standing = standingOf(over, more)
      return [
        mine.allows(undefined, undefined),
        mine.allows(authorization, undefined),
        mine.allows(authorization, caller),
      ]
    }
    expect(allowed({})).toEqual([true, true, true])
    expect(allowed({}, { passwordHash: sha256("ada:x") })).toEqual([false, true, true])
    expect(allowed({ callers: "signed" }, { passwordHash: sha256("ada:x") })).toEqual([false, false, true])
    expect(allowed({ callers: ["https://other.example"] })).toEqual([false, false, false])
  })

  it("judge a signed request once more after its signature was verified", async () => {
    const { state, terms, shown, standingOf } = await tunnel({ callers: "signed" })
    const { terms: mine } = await terms(signedHead())
    const found = async () => {
      const caller = await mine.callerOf(signedHead())
      return Buffer.isBuffer(caller) ? shown(caller) : caller
    }
    expect(await found()).toEqual({ origin, handle: "eve" })
    state.verifying = () => (state.standing = standingOf({ callers: ["https://other.example"] }))
    expect(await found()).toEqual([401, `This tunnel is not open to ${origin}.`])
    state.standing = standingOf({})
    state.verifying = () => (state.standing = undefined)
    expect(await found()).toEqual([404, "tunnel_not_found"])
  })
})

it("a request is routed again after the cached name is dropped, and a failure has the code of its reset", async () => {
  const { requests, did, shown } = await tunnel()
  const client: Client = { address: "192.0.2.1", proto: "https", serverName: undefined }
  await Effect.runPromise(requests.reroute(headOf(), client))
  expect(did()).toEqual(["forget ada", "look ada", "budget of org", "find ada"])
  expect(Object.values(reset).map((code) => [code, shown(requests.failed(headOf(), code))[1]])).toEqual([
    [reset.cancel, "tunnel_link_lost"],
    [reset.local_refused, "tunnel_local_refused"],
    [reset.local_timeout, "tunnel_local_timeout"],
    [reset.link_lost, "tunnel_link_lost"],
    [reset.quota, "tunnel_transfer_blocked"],
    [reset.not_here, "tunnel_agent_offline"],
    [reset.overloaded, "tunnel_link_lost"],
    [reset.policy, "tunnel_link_lost"],
    [reset.protocol, "tunnel_link_lost"],
    [reset.internal, "tunnel_link_lost"],
  ])
})

describe("the memory of an edge", () => {
  it("has 100,000 signed requests of a Tunnel; further ones are refused until earlier ones expire", () => {
    const memory = makeMemory()
    const most = 100_000
    const taken = new Set(Array.from({ length: most }, (_, n) => memory.take("ada", String(n), 0, 0)))
    expect([...taken]).toEqual(["new"])
    expect([memory.take("ada", "more", 0, 0), memory.take("ada", "0", 0, 0)]).toEqual(["full", "repeated"])
    // Other Tunnels are not affected.
    expect([memory.take("bob", "more", 0, 0), memory.take("bob", "more", 0, 0)]).toEqual(["new", "repeated"])
    // A signature is accepted for a minute and a difference of the clocks, and remembered for as long.
    const until = signatureSeconds + clockSkewSeconds
    expect([memory.take("ada", "more", until, until), memory.take("ada", "0", 0, until)]).toEqual(["full", "repeated"])
    expect([memory.take("ada", "more", until, until + 1), memory.take("ada", "0", until, until + 1)]).toEqual([
      "new",
      "new",
    ])
    expect(memory.take("ada", "more", until, until + 1)).toBe("repeated")
  })

  it("drops Tunnels without a recent signed request", () => {
    const tunnels = new Map()
    const memory = makeMemory(tunnels)
    for (const identity of ["ada", "bob"]) memory.take(identity, "first", 1_000, 1_000)
    memory.take("eve", "first", 10_000, 10_000)
    expect([...tunnels.keys()]).toEqual(["eve"])
  })

  it("has 100,000 counters of wrong passwords, and drops the oldest one for another", () => {
    let now = 0
    const guesses = PasswordThrottle.make(() => now)
    const guess = (client: string, times: number) => {
      for (let n = 0; n < times; n++) guesses.failed("ada", client)
    }
    for (const client of ["first", "second"]) guess(client, 10)
    for (let n = 2; n < 100_000; n++) guess(String(n), 1)
    expect([guesses.brakedFor("ada", "first"), guesses.brakedFor("ada", "second")]).toEqual([60_000, 60_000])
    guess("another", 1)
    expect([guesses.brakedFor("ada", "first"), guesses.brakedFor("ada", "second")]).toEqual([0, 60_000])
    // Counters whose minute is over make room first.
    now = 60_000
    guess("later", 10)
    expect([guesses.brakedFor("ada", "second"), guesses.brakedFor("ada", "later")]).toEqual([0, 60_000])
  })
})
