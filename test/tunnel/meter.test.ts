/** The metering of an edge at the limits of its leases, without sockets. The test provides the store and the actor. */
import * as PasswordThrottle from "@svc/tunnel-edge/edge/routing/PasswordThrottle"
import * as Metering from "@svc/tunnel-edge/edge/Metering"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import type { Usage } from "@svc/cluster/tunnel/TunnelUsage"
import { bucketOf } from "@svc/cluster/usage/UsageCounters"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { Effect } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"

const grace = 64 * 1024

const metered = (granted: ReadonlyArray<{ granted: number; ends_in: number }>) => {
  const leases: Array<number> = []
  const recorded: Array<ReadonlyArray<Usage>> = []
  const state = { now: 1_000, stored: true, whileStoring: () => {} }
  const metering = Metering.make({
    lease: (_, { used }) =>
      Effect.sync(() => {
        leases.push(used)
        return granted[leases.length - 1]!
      }),
    record: (usage) =>
      Effect.suspend((): Effect.Effect<void, string> => {
        state.whileStoring()
        if (!state.stored) return Effect.fail("away")
        recorded.push(usage)
        return Effect.void
      }),
    run: (effect) => Effect.runSync(effect),
    now: () => state.now,
  })
  return { metering, leases: leases, recorded, state }
}

describe("the meter of an edge", () => {
  it("requests the next lease when less than half is left", () => {
    const { metering, leases } = metered([
      { granted: 1000, ends_in: 0 },
      { granted: 1000, ends_in: 0 },
    ])
    const passage = metering.open("org", "identity", () => {})
    expect(passage.count("in", grace / 2)).toBe(true)
    expect(leases).toEqual([])
    passage.count("out", 1)
    expect(leases).toEqual([grace / 2 + 1])
    passage.count("in", 500)
    expect(leases).toHaveLength(1)
    passage.count("in", 1)
    expect(leases).toEqual([grace / 2 + 1, 501])
  })

  it("stops at the last byte of a lease, and closes connections when the day is exhausted", () => {
    const { metering, leases, state } = metered([{ granted: 0, ends_in: 5_000 }])
    let cut = 0
    const passage = metering.open("org", "identity", () => cut++)
    const other = metering.open("org", "identity", () => cut++)
    const closed = metering.open("org", "identity", () => cut++)
    closed.close()
    expect(metering.blockedFor("org")).toBe(0)
    expect(passage.count("in", grace)).toBe(false)
    expect(leases).toEqual([grace])
    expect(cut).toBe(2)
    expect(metering.blockedFor("org")).toBe(5_000)
    expect(metering.blockedFor("another")).toBe(0)
    state.now += 4_999
    expect(metering.blockedFor("org")).toBe(1)
    state.now += 1
    expect(metering.blockedFor("org")).toBe(0)
    other.close()
  })

  it("keeps usage that could not be stored for the next flush", async () => {
    const { metering, recorded, state } = metered(Array.from({ length: 9 }, () => ({ granted: grace, ends_in: 0 })))
    const passage = metering.open("org", "identity", () => {})
    passage.count("in", 10)
    passage.count("out", 20)
    passage.countRequest()
    state.stored = false
    await Effect.runPromise(metering.flush)
    expect(recorded).toEqual([])
    passage.countRequest()
    passage.count("in", 1)
    state.stored = true
    await Effect.runPromise(metering.flush)
    expect(recorded).toEqual([
      [{ identity_id: "identity", bytes_in: 11, bytes_out: 20, requests: 2, errors: 0, durations: new Map() }],
    ])
  })

  it("counts each response once, with the duration of successful ones", async () => {
    const { metering, recorded, state, leases } = metered([])
    const passage = metering.open("org", "identity", () => {})
    const respond = (millis: number, isError: boolean) => {
      passage.countRequest()
      state.now += millis
      passage.countResponse(isError)
    }
    respond(30, false)
    respond(500, true)
    // Further chunks of the same response.
    passage.countResponse(false)
    metering.countOffline("identity")
    state.stored = false
    // A response that arrives during the attempt is counted in addition to those of the failed attempt.
    state.whileStoring = () => respond(30, false)
    await Effect.runPromise(metering.flush)
    respond(10, false)
    state.stored = true
    state.whileStoring = () => {}
    await Effect.runPromise(metering.flush)
    const durations = new Map([
      [bucketOf(30), 2],
      [bucketOf(10), 1],
    ])
    expect(recorded).toMatchObject([[{ requests: 5, errors: 2, durations }]])
    // If there was no traffic, nothing is stored and no lease is reported.
    await Effect.runPromise(metering.flush)
    expect([recorded.length, leases]).toEqual([1, []])
  })
})

describe("a lease whose request fails", () => {
  afterEach(() => void vi.useRealTimers())

  it("is requested again under the same number while connections wait, and with the next bytes otherwise", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const reports: Array<readonly [used: number, report: number]> = []
    let fails = true
    const metering = Metering.make({
      lease: (_, { used, report }) =>
        Effect.suspend(() => {
          reports.push([used, report])
          return fails ? Effect.fail("away") : Effect.succeed({ granted: 1_000, ends_in: 0 })
        }),
      record: () => Effect.void,
      run: (effect) => Effect.runFork(effect),
      now: () => 0,
    })
    const passage = metering.open("org", "identity", () => {})
    let rooms = 0
    passage.onRoom = () => rooms++
    const pass = (millis: number) => vi.advanceTimersByTimeAsync(millis)
    // There is room left, so nothing waits.
    expect(passage.count("in", grace - 1)).toBe(true)
    await pass(3 * Timing.leaseAgainMillis)
    expect(reports).toEqual([[grace - 1, 1]])
    expect(passage.count("in", 1)).toBe(false)
    expect(passage.count("in", 10)).toBe(false)
    await pass(Timing.leaseAgainMillis - 1)
    expect(reports).toHaveLength(2)
    fails = false
    await pass(1)
    expect([reports, rooms]).toEqual([Array.from({ length: 3 }, () => [grace - 1, 1]), 1])
    fails = true
    // The bytes that passed in the meantime are charged to the new lease.
    expect(passage.count("in", 1_000 - 11 - 1)).toBe(true)
    expect(passage.count("in", 1)).toBe(false)
  })
})

describe("the password throttle", () => {
  it("blocks a client from its tenth failure until the minute of the first one ends, and nobody else", () => {
    let now = 0
    const guesses = PasswordThrottle.make(() => now)
    for (let n = 0; n < 9; n++) guesses.failed("one", "192.0.2.1")
    expect(guesses.brakedFor("one", "192.0.2.1")).toBe(0)
    now = 20_000
    guesses.failed("one", "192.0.2.1")
    expect(guesses.brakedFor("one", "192.0.2.1")).toBe(40_000)
    expect(guesses.brakedFor("one", "192.0.2.2")).toBe(0)
    expect(guesses.brakedFor("two", "192.0.2.1")).toBe(0)
    now = 59_999
    expect(guesses.brakedFor("one", "192.0.2.1")).toBe(1)
    now = 60_000
    expect(guesses.brakedFor("one", "192.0.2.1")).toBe(0)
    // The next minute allows the same number of attempts again.
    for (let n = 0; n < 9; n++) guesses.failed("one", "192.0.2.1")
    expect(guesses.brakedFor("one", "192.0.2.1")).toBe(0)
    guesses.failed("one", "192.0.2.1")
    expect(guesses.brakedFor("one", "192.0.2.1")).toBe(60_000)
  })
})

describe("link selection", () => {
  const link = (id: string, streams: number, more: Partial<Registry.Attached> = {}) =>
    ({
      id,
      canonical: "ada",
      draining: false,
      leaving: false,
      localUp: true,
      link: { mux: { streams: { size: streams } } },
      ...more,
    }) as unknown as Registry.Attached

  it("prefers the least busy healthy link, then an unhealthy one, then a draining one, and never a closing one", () => {
    let now = 100
    const registry = Registry.make(() => now)
    const links = [
      link("leaves", 0),
      link("drains", 0, { draining: true }),
      link("down", 0, { localUp: false }),
      link("busy", 5),
      link("best", 4),
    ]
    for (const one of links) registry.add(one)
    registry.leave(links[0]!)
    const picked = () => registry.pick("ada")?.id
    const order = ["best", "busy", "down", "drains", undefined]
    for (const id of order) {
      expect(picked()).toBe(id)
      const one = links.find((other) => other.id === id)
      if (id !== "drains" && one !== undefined) registry.remove(one)
      else if (one !== undefined) {
        // When the last remaining link leaves, the edge records the time, and requests for the handle wait from then on.
        expect(registry.lostAt("ada")).toBeUndefined()
        now = 200
        registry.leave(one)
        expect(registry.lostAt("ada")).toBe(200)
      }
    }
    registry.add(link("new", 0))
    expect(registry.lostAt("ada")).toBeUndefined()
  })
})
