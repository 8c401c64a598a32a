/** Which hosts, settings and links of a name an edge uses. */
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { tunnelKey } from "@svc/cluster/tunnel/TunnelLinks"
import type { AddressBook } from "@svc/domain/Addresses"
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import type { Peers } from "@svc/tunnel-edge/edge/links/Peers"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import * as Hosts from "@svc/tunnel-edge/edge/routing/Hosts"
import * as Routes from "@svc/tunnel-edge/edge/routing/Routes"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"

it("Production accepts links only at the host that agents dial", () => {
  const hosts = (environment: AddressBook["environment"]) =>
    Hosts.make({ environment, tunnelDomain: "Tunnel.example" } as AddressBook)
  const takes = (environment: AddressBook["environment"]) =>
    ["connect.tunnel.example", "ada.tunnel.example", "connect.example", "localhost"].filter(
      hosts(environment).takesLinks,
    )
  expect(takes("production")).toEqual(["connect.tunnel.example"])
  expect(takes("development")).toHaveLength(4)
  expect(["ada.tunnel.example", "A-da.tunnel.example", "tunnel.example"].map(hosts("production").nameOf)).toEqual([
    "ada",
    "ada",
    undefined,
  ])
})

/** A link with this many streams, which records what is opened at it. */
const linkWith = (size: number, opened: Array<string> = []) => ({
  mux: {
    streams: { size },
    open: (kind: number, flags: number, meta: Buffer) => void opened.push(`${kind} ${flags} ${meta}`),
  },
})
const attached = (conn: string, streams = 0, more: Partial<Registry.Attached> = {}) =>
  ({
    canonical: "ada",
    conn,
    link: linkWith(streams),
    draining: false,
    leaving: false,
    localUp: true,
    ...more,
  }) as unknown as Registry.Attached

describe("the links of an edge", () => {
  it("are picked by their state first and by their streams then", () => {
    const registry = Registry.make(() => 0)
    const picked = () => registry.pick("ada")?.conn
    expect([picked(), registry.of("ada"), registry.all()]).toEqual([undefined, [], []])
    const [down, busy, idle] = [attached("down", 0, { localUp: false }), attached("busy", 2), attached("idle", 1)]
    const [draining, leaving] = [attached("draining", 0, { draining: true }), attached("leaving", 0, { leaving: true })]
    registry.add(leaving)
    expect(picked()).toBeUndefined()
    registry.add(draining)
    expect(picked()).toBe("draining")
    registry.add(down)
    expect(picked()).toBe("down")
    registry.add(busy)
    expect(picked()).toBe("busy")
    registry.add(idle)
    expect(picked()).toBe("idle")
    // Of two equal links, the first stays.
    registry.add(attached("second", 1))
    expect(picked()).toBe("idle")
    registry.remove(idle)
    expect(picked()).toBe("second")
    registry.add(attached("other", 0, { canonical: "bob" }))
    expect([picked(), registry.pick("bob")?.conn, registry.all().length]).toEqual(["second", "other", 6])
  })

  it("remember when the last link of a name was lost or left, until the next one", () => {
    let now = 1
    const registry = Registry.make(() => now)
    const [one, two] = [attached("0"), attached("1")]
    for (const link of [one, two]) registry.add(link)
    registry.leave(one)
    expect([registry.lostAt("ada"), one.draining, one.leaving]).toEqual([undefined, true, true])
    now = 2
    registry.leave(two)
    expect(registry.lostAt("ada")).toBe(2)
    registry.add(attached("2"))
    expect(registry.lostAt("ada")).toBeUndefined()
    for (const link of registry.of("ada")) registry.remove(link)
    now = 3
    const last = attached("3")
    registry.add(last)
    registry.remove(last)
    expect([registry.lostAt("ada"), registry.of("ada"), registry.lostAt("bob")]).toEqual([3, [], undefined])
  })

  it("remember 10,000 losses", () => {
    const registry = Registry.make(() => 7)
    for (let n = 0; n <= 10_000; n++) {
      const one = attached("0", 0, { canonical: String(n) })
      registry.add(one)
      registry.remove(one)
    }
    expect([registry.lostAt("9999"), registry.lostAt("10000")]).toEqual([undefined, 7])
  })
})

/** Routes of an edge whose surroundings the test changes. */
const routing = Effect.gen(function* () {
  const state = {
    standings: {} as Record<string, Partial<Standing>>,
    fails: false,
    looks: [] as Array<string>,
    changed: [] as Array<string>,
    peers: {} as Record<string, ReturnType<typeof linkWith> | undefined>,
    dialled: [] as Array<string>,
  }
  const keys = yield* Queue.unbounded<ReadonlySet<string> | undefined>()
  const registry = Registry.make(() => 0)
  const losses = new Map<string, number>()
  const launched: Array<Effect.Effect<void>> = []
  const routes = yield* Routes.make({
    edgeId: "edge",
    registry: { ...registry, lostAt: (name) => losses.get(name) },
    peers: { to: async (address: string) => (state.dialled.push(address), state.peers[address]) } as unknown as Peers,
    launch: (effect) => void launched.push(effect),
    onChange: (name) => void state.changed.push(name),
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.mock(TunnelQueries)({
          standing: (name) =>
            Effect.suspend(() => {
              state.looks.push(name)
              return state.fails
                ? Effect.fail("down" as never)
                : Effect.succeed(state.standings[name] as Standing | undefined)
            }),
        }),
        Layer.mock(ChangeFeed)({ follow: () => Effect.succeed({ await: Queue.take(keys) }) } as never),
      ),
    ),
  )
  const launch = Effect.suspend(() => Effect.forEach(launched.splice(0), (effect) => effect, { discard: true }))
  const looks = () => state.looks.splice(0)
  const turns = Effect.forEach(Array.from({ length: 10 }), () => Effect.yieldNow, { discard: true })
  return { state, keys, registry, losses, routes, launch, looks, turns }
})
const holder = (edge: string, local_host: string | null = null) => ({
  edge_id: edge,
  edge_address: `${edge}:1`,
  local_host,
})
const ready = (...holders: ReadonlyArray<ReturnType<typeof holder>>): Partial<Standing> => ({
  status: "ready",
  holders,
})

describe("the standing of a name", () => {
  it.effect(
    "is kept for 30 s with links, 2 s without, 5 s if the name is unknown, and not at all after a failure",
    () =>
      Effect.gen(function* () {
        const { state, routes, looks } = yield* routing
        state.standings = { ada: ready(holder("other")), bob: ready() }
        for (const [name, seconds] of [
          ["ada", 30],
          ["bob", 2],
          ["eve", 5],
        ] as const) {
          expect(yield* routes.standing(name)).toBe(state.standings[name])
          yield* TestClock.adjust(seconds * 1000 - 1)
          yield* routes.standing(name)
          expect(looks()).toEqual([name])
          yield* TestClock.adjust(1)
          yield* routes.standing(name)
          expect(looks()).toEqual([name])
          yield* routes.forget(name)
          yield* routes.standing(name)
          expect(looks()).toEqual([name])
        }
        state.fails = true
        yield* routes.forget("ada")
        expect(yield* Effect.exit(routes.standing("ada"))).toMatchObject({ _tag: "Failure" })
        state.fails = false
        expect(yield* routes.standing("ada")).toBe(state.standings["ada"])
      }).pipe(Effect.scoped),
  )

  it.effect("is undefined while the Identity is being deleted", () =>
    Effect.gen(function* () {
      const { state, routes } = yield* routing
      state.standings = { ada: ready(), bob: { status: "deleting", holders: [] } }
      expect(yield* routes.standing("ada")).toBe(state.standings["ada"])
      expect(yield* routes.standing("bob")).toBeUndefined()
      expect(yield* routes.standing("eve")).toBeUndefined()
    }).pipe(Effect.scoped),
  )

  it.effect("is looked up again after a change of the name, and for all names after a gap of the feed", () =>
    Effect.gen(function* () {
      const { state, keys, routes, looks, launch, turns } = yield* routing
      state.standings = { ada: ready(), bob: ready() }
      let changes = 0
      const connection = routes.open("ada", (yield* routes.standing("ada"))!, () => void changes++)
      yield* routes.standing("bob")
      yield* launch
      expect(looks()).toEqual(["ada", "bob"])
      state.standings["ada"] = ready()
      yield* Queue.offer(keys, new Set([tunnelKey("ada")]))
      yield* turns
      yield* launch
      expect([state.changed.splice(0), looks(), changes]).toEqual([["ada"], ["ada"], 1])
      expect(connection.now()).toBe(state.standings["ada"])
      yield* routes.standing("bob")
      expect(looks()).toEqual([])
      // The changed names are unknown, so all cached names are dropped, and those of open connections are looked up.
      state.standings["ada"] = ready()
      yield* Queue.offer(keys, undefined)
      yield* turns
      yield* launch
      expect([state.changed, looks(), changes]).toEqual([[], ["ada"], 2])
      yield* routes.standing("bob")
      expect(looks()).toEqual(["bob"])
      connection.close()
      state.standings["ada"] = ready()
      yield* Queue.offer(keys, new Set([tunnelKey("ada")]))
      yield* turns
      yield* launch
      expect([changes, looks()]).toEqual([2, []])
    }).pipe(Effect.scoped),
  )

  it.effect("that changed while a request waited for its agent reaches the connection of the request", () =>
    Effect.gen(function* () {
      const { state, routes, launch, looks } = yield* routing
      state.standings = { ada: ready(holder("other")) }
      const judged = (yield* routes.standing("ada"))!
      let changes = 0
      const same = routes.open("ada", judged, () => void changes++)
      yield* launch
      expect([looks(), changes]).toEqual([["ada"], 0])
      same.close()
      state.standings["ada"] = ready(holder("other"))
      yield* routes.forget("ada")
      const late = routes.open("ada", judged, () => void changes++)
      yield* launch
      expect([changes, late.now()]).toEqual([1, state.standings["ada"]])
    }).pipe(Effect.scoped),
  )
})

describe("the route to an agent", () => {
  it.effect("is a link of this edge, or the less busy of the first two edges that hold one", () =>
    Effect.gen(function* () {
      const { state, routes, registry } = yield* routing
      const opened: Array<string> = []
      state.peers = { "busy:1": linkWith(2), "idle:1": linkWith(1, opened), "third:1": linkWith(0) }
      const standing = ready(
        holder("edge"),
        holder("busy"),
        holder("idle", "localhost:80"),
        holder("third"),
      ) as Standing
      const away = yield* routes.find("ada", standing)
      expect([state.dialled.splice(0), away!.localHost, away!.isLeaving()]).toEqual([
        ["busy:1", "idle:1"],
        "localhost:80",
        false,
      ])
      away!.open(2, { peer: "x" })
      expect(opened).toEqual(['2 1 {"peer":"x","name":"ada"}'])
      const turned = ready(holder("idle", "localhost:80"), holder("busy")) as Standing
      expect((yield* routes.find("ada", turned))!.localHost).toBe("localhost:80")
      delete state.peers["idle:1"]
      expect((yield* routes.find("ada", standing))!.localHost).toBeNull()
      state.dialled.length = 0
      const here: Array<string> = []
      const link = attached("0", 0, { link: linkWith(5, here) as never, localHost: "localhost:3000" })
      registry.add(link)
      const near = yield* routes.find("ada", standing)
      near!.open(1, { peer: "x" })
      expect([state.dialled, here, near!.localHost, near!.isLeaving()]).toEqual([
        [],
        ['1 0 {"peer":"x"}'],
        "localhost:3000",
        false,
      ])
      link.leaving = true
      expect(near!.isLeaving()).toBe(true)
    }).pipe(Effect.scoped),
  )

  it.effect("is waited for up to 3 s if the last link was lost within 10 s, and not longer or later", () =>
    Effect.gen(function* () {
      const { routes, registry, losses } = yield* routing
      const now = yield* monotonicMillis
      const standing = ready() as Standing
      const found = Effect.map(routes.find("ada", standing), (way) => way !== undefined)
      expect(yield* found).toBe(false)
      losses.set("ada", now - 10_000)
      expect(yield* found).toBe(false)
      losses.set("ada", now - 9_999)
      const waiting = yield* Effect.forkChild(found, { startImmediately: true })
      yield* TestClock.adjust(2_999)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(waiting)).toBe(false)
      losses.set("ada", yield* monotonicMillis)
      const again = yield* Effect.forkChild(found, { startImmediately: true })
      yield* TestClock.adjust(1_000)
      registry.add(attached("0"))
      yield* TestClock.adjust(50)
      expect(yield* Fiber.join(again)).toBe(true)
    }).pipe(Effect.scoped),
  )

  it.effect("is waited for by 100 requests of a name, and by others when one of them has ended", () =>
    Effect.gen(function* () {
      const { routes, losses } = yield* routing
      for (const name of ["ada", "bob"]) losses.set(name, yield* monotonicMillis)
      const standing = ready() as Standing
      const find = (name: string) => Effect.forkChild(routes.find(name, standing), { startImmediately: true })
      const waiting = yield* Effect.forEach(Array.from({ length: 100 }), () => find("ada"))
      expect(waiting.every((fiber) => fiber.pollUnsafe() === undefined)).toBe(true)
      expect((yield* find("ada")).pollUnsafe()).toMatchObject({ _tag: "Success", value: undefined })
      expect((yield* find("bob")).pollUnsafe()).toBeUndefined()
      // The client of one request has gone.
      yield* Fiber.interrupt(waiting[0]!)
      expect((yield* find("ada")).pollUnsafe()).toBeUndefined()
      expect((yield* find("ada")).pollUnsafe()).toMatchObject({ _tag: "Success", value: undefined })
    }).pipe(Effect.scoped),
  )

  it.effect("is looked up again if no edge that holds a link is reachable", () =>
    Effect.gen(function* () {
      const { state, routes, looks } = yield* routing
      const standing = ready(holder("crashed")) as Standing
      state.standings = { ada: standing }
      yield* routes.standing("ada")
      expect(looks()).toEqual(["ada"])
      const waiting = yield* Effect.forkChild(routes.find("ada", standing), { startImmediately: true })
      yield* TestClock.adjust(0)
      state.standings["ada"] = ready(holder("next"))
      state.peers = { "next:1": linkWith(0) }
      yield* TestClock.adjust(50)
      expect(yield* Fiber.join(waiting)).toBeDefined()
      expect(looks()).toEqual(["ada"])
    }).pipe(Effect.scoped),
  )
})
