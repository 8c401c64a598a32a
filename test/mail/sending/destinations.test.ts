/** The state that direct delivery keeps of each domain: slots, back-off and connections. */
import { describe, expect, it } from "@effect/vitest"
import { LookupFailed, type Resolver } from "@svc/mail-gateway/mail/Resolver"
import * as Destinations from "@svc/mail-gateway/mail/sending/Destinations"
import * as Exchangers from "@svc/mail-gateway/mail/sending/Exchangers"
import { Timing } from "@svc/mail-gateway/Timing"
import type { Conversation, Outcome } from "@svc/mail-gateway/mail/sending/smtp/Conversation"
import type { Letter } from "@svc/mail-gateway/mail/sending/smtp/Letter"
import * as Pool from "@svc/mail-gateway/mail/sending/smtp/Pool"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, vi } from "vitest"

const settle = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)

/** Runs deliveries that never end, and returns how many began. */
const begun = Effect.fnUntraced(function* (all: ReturnType<typeof Destinations.make>, domains: ReadonlyArray<string>) {
  let count = 0
  const fibers = yield* Effect.forEach(domains, (domain) =>
    Effect.forkChild(
      all.withSlot(
        domain,
        () =>
          Effect.andThen(
            Effect.sync(() => void count++),
            Effect.never,
          ),
        Effect.succeed("held"),
      ),
    ),
  )
  yield* settle
  return { count: () => count, fibers }
})

const named = (count: number, name: (n: number) => string) => Array.from({ length: count }, (_, n) => name(n))
const free = (all: ReturnType<typeof Destinations.make>, domain: string) =>
  Effect.forkChild(all.withSlot(domain, () => Effect.succeed("sent"), Effect.succeed("held")))

describe("A slot for direct delivery", () => {
  it.effect("is one of five of its domain, and is waited for half a minute", () =>
    Effect.gen(function* () {
      const all = Destinations.make()
      // A slot that was used is free once.
      expect(yield* Fiber.join(yield* free(all, "a.example"))).toBe("sent")
      const { count } = yield* begun(
        all,
        named(6, () => "a.example"),
      )
      expect(count()).toBe(5)
      const late = yield* free(all, "a.example")
      expect(yield* Fiber.join(yield* free(all, "b.example"))).toBe("sent")
      yield* TestClock.adjust(Timing.sendTurnMillis - 1)
      expect(late.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(late)).toBe("held")
    }),
  )

  it.effect("is one of fifty of all domains, and returns however the delivery ends", () =>
    Effect.gen(function* () {
      const all = Destinations.make()
      const { count, fibers } = yield* begun(
        all,
        named(51, (n) => `${n}.example`),
      )
      expect(count()).toBe(50)
      // The last one waits, with a slot of its domain, and is interrupted.
      yield* Fiber.interrupt(fibers[50]!)
      yield* Fiber.interrupt(fibers[0]!)
      for (const _ of [1, 2]) {
        const failed = all.withSlot("50.example", () => Effect.fail("no"), Effect.succeed("held"))
        expect(yield* Effect.flip(failed)).toBe("no")
      }
      const next = yield* begun(
        all,
        named(2, (n) => `next${n}.example`),
      )
      expect(next.count()).toBe(1)
      yield* Fiber.interrupt(fibers[1]!)
      yield* settle
      expect(next.count()).toBe(2)
    }),
  )

  it.effect("that was waited for in vain is not lost for its domain", () =>
    Effect.gen(function* () {
      const all = Destinations.make()
      const { fibers } = yield* begun(
        all,
        named(50, (n) => `${n}.example`),
      )
      // Each gets a slot of the domain, and none of all slots.
      const waiting = yield* Effect.forEach(
        named(5, () => "late.example"),
        (domain) => free(all, domain),
      )
      yield* settle
      yield* TestClock.adjust(Timing.sendTurnMillis)
      expect(yield* Effect.forEach(waiting, Fiber.join)).toEqual(named(5, () => "held"))
      for (const fiber of fibers.slice(0, 5)) yield* Fiber.interrupt(fiber)
      const { count } = yield* begun(
        all,
        named(5, () => "late.example"),
      )
      expect(count()).toBe(5)
    }),
  )
})

describe("A domain whose servers cannot be reached", () => {
  const destinationOf = (all: ReturnType<typeof Destinations.make>, domain: string) =>
    all.withSlot(domain, (destination) => Effect.succeed(destination), Effect.die("busy"))

  it.effect("is left alone twice as long after each attempt, and not at all after it was reached", () =>
    Effect.gen(function* () {
      const all = Destinations.make()
      const one = yield* destinationOf(all, "a.example")
      const waits = named(7, () => {
        all.unreachable(one, 1_000)
        return String((one.backOffUntil - 1_000) / 1_000)
      })
      expect(waits).toEqual(["30", "60", "120", "240", "480", "900", "900"])
      all.reached(one)
      expect(one.backOffUntil).toBe(0)
      all.unreachable(one, 0)
      expect(one.backOffUntil).toBe(Timing.backOffMillis)
    }),
  )

  it.effect("is remembered when others are forgotten, like one with a delivery in progress", () =>
    Effect.gen(function* () {
      const all = Destinations.make()
      const unreachable = yield* destinationOf(all, "unreachable.example")
      all.unreachable(unreachable, 0)
      yield* begun(all, ["busy.example"])
      const busy = yield* destinationOf(all, "busy.example")
      const idle = yield* destinationOf(all, "idle.example")
      const closed: Array<string> = []
      for (const [name, { pools }] of Object.entries({ idle, busy })) {
        pools.set("mx.example", { close: () => void closed.push(name) } as never)
      }
      for (let n = 3; n < 10_000; n++) yield* destinationOf(all, `${n}.example`)
      expect(yield* destinationOf(all, "idle.example")).toBe(idle)
      yield* destinationOf(all, "one-too-many.example")
      expect(yield* destinationOf(all, "idle.example")).not.toBe(idle)
      expect(yield* destinationOf(all, "unreachable.example")).toBe(unreachable)
      expect(yield* destinationOf(all, "busy.example")).toBe(busy)
      // The connections to a forgotten domain are closed at that time, and all others at the end.
      expect(closed).toEqual(["idle"])
      all.close()
      expect(closed).toEqual(["idle", "busy"])
    }),
  )

  it.effect("keeps one pool for each server, and forgets those without a message above twenty", () =>
    Effect.gen(function* () {
      const all = Destinations.make()
      const one = yield* destinationOf(all, "a.example")
      const pool = (key: string) => all.pool(one, key, Effect.never)
      const first = pool("0")
      for (let n = 1; n <= 20; n++) pool(`${n}`)
      expect([pool("0") === first, one.pools.size]).toEqual([true, 21])
      const sends = yield* Effect.forkChild(pool("7").transact({} as never), { startImmediately: true })
      pool("another")
      expect([...one.pools.keys()]).toEqual(["7", "another"])
      yield* Fiber.interrupt(sends)
      for (let n = 8; n <= 27; n++) pool(`${n}`)
      expect([...one.pools.keys()]).toEqual(["27"])
    }),
  )
})

describe("A pool of connections to a server", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  /** Returns a pool, the actions of its connections, and the numbers of the connections that the server has closed. */
  const pooled = () => {
    const did: Array<string> = []
    const gone = new Set<number>()
    const breaks = new Set<number>()
    /** Ends the messages in flight, which wait for it while it is set. */
    let held: Array<() => void> | undefined
    let count = 0
    const begin = Effect.sync((): Conversation => {
      const n = ++count
      const note = (what: string) => void did.push(`${n} ${what}`)
      return {
        isOpen: () => !gone.has(n),
        isSecure: false,
        rest: () => note("rests"),
        wake: () => note("wakes"),
        transact: () =>
          Effect.callback<Outcome>((resume) => {
            note("sends")
            const end = () =>
              resume(Effect.succeed(breaks.has(n) ? { _tag: "Broken", message: "gone" } : { _tag: "Held" }))
            if (held === undefined) end()
            else held.push(end)
          }),
        quit: () => note("quits"),
      }
    })
    const pool = Pool.make({ begin, maxConnections: 2, idleMillis: 1_000, maxLetters: 3 })
    // The connections do not read it.
    const letter = {} as Letter
    return {
      pool,
      gone,
      breaks,
      did: () => did.splice(0),
      send: () => Effect.runPromise(pool.transact(letter)).then(({ _tag }) => _tag),
      hold: () => {
        const now: Array<() => void> = (held = [])
        return {
          begun: async (messages: number) => {
            while (now.length < messages) await new Promise((resolve) => setImmediate(resolve))
          },
          end: () => {
            held = undefined
            for (const end of now.splice(0)) end()
          },
        }
      },
    }
  }

  it("reuses a connection until it has carried its messages, or was idle too long", async () => {
    const { pool, send, did } = pooled()
    expect(pool.isEmpty()).toBe(true)
    for (let n = 0; n < 3; n++) await send()
    const again = ["1 sends", "1 rests", "1 wakes"]
    expect(did()).toEqual([...again, ...again, "1 sends", "1 quits"])
    expect(pool.isEmpty()).toBe(true)
    await send()
    vi.advanceTimersByTime(999)
    await send()
    vi.advanceTimersByTime(999)
    expect(did()).toEqual(["2 sends", "2 rests", "2 wakes", "2 sends", "2 rests"])
    expect(pool.isEmpty()).toBe(false)
    vi.advanceTimersByTime(1)
    expect([did(), pool.isEmpty()]).toEqual([["2 quits"], true])
  })

  it("sends a message that an idle connection did not accept over a new one, once", async () => {
    const { send, did, gone, breaks } = pooled()
    await send()
    gone.add(1)
    await send()
    expect(did()).toEqual(["1 sends", "1 rests", "2 sends", "2 rests"])
    for (const n of [2, 3]) breaks.add(n)
    gone.add(3)
    expect(await send()).toBe("Broken")
    expect(did()).toEqual(["2 wakes", "2 sends", "2 rests", "3 sends", "3 quits"])
  })

  it("has at most its number of connections, and closes each when it is idle", async () => {
    const { pool, send, did, hold } = pooled()
    const { begun, end } = hold()
    const sent = [send(), send(), send()]
    await begun(2)
    expect([did(), pool.isEmpty()]).toEqual([["1 sends", "2 sends"], false])
    end()
    await Promise.all(sent)
    expect(did().filter((one) => one.endsWith("sends"))).toHaveLength(1)
    vi.advanceTimersByTime(1_000)
    expect([did().sort(), pool.isEmpty()]).toEqual([["1 quits", "2 quits"], true])
  })

  it("that is closed closes its idle connections, and others after their message", async () => {
    const { pool, send, did, hold } = pooled()
    const first = hold()
    const sent = [send(), send()]
    await first.begun(2)
    first.end()
    await Promise.all(sent)
    const second = hold()
    const last = send()
    await second.begun(1)
    did()
    pool.close()
    expect(did()).toEqual(["1 quits"])
    second.end()
    await last
    expect([did(), pool.isEmpty(), vi.getTimerCount()]).toEqual([["2 quits"], true, 0])
  })
})

describe("The mail servers of a domain", () => {
  /** A resolver that knows these records, by name and type. */
  const resolver = (records: Readonly<Record<string, unknown>>): Resolver["Service"] =>
    ({
      lookup: (name: string, type: string) => {
        const found = records[`${name} ${type}`]
        return typeof found === "object"
          ? Effect.succeed(found)
          : Effect.fail(new LookupFailed({ code: String(found) }))
      },
    }) as never
  const mx = (priority: number, exchange: string) => ({ priority, exchange })
  const find = (records: ReadonlyArray<object>) =>
    Effect.runPromise(Exchangers.find(resolver({ "x.example MX": records }), "x.example", new Set(["own.example"])))

  it("are tried by preference, in random order among equals, and at most ten of them", async () => {
    const found = new Set<string>()
    for (let n = 0; n < 60; n++) {
      const servers = await find([
        mx(20, "Last.example."),
        mx(10, "a.example"),
        mx(10, "b.example"),
        mx(5, "c.example"),
      ])
      found.add(servers.join(" "))
    }
    expect([...found].sort()).toEqual([
      "c.example a.example b.example last.example",
      "c.example b.example a.example last.example",
    ])
    expect(await find(Array.from({ length: 11 }, (_, n) => mx(n, `${n}.example`)))).toHaveLength(10)
    // The null MX is no server, and a server that is named twice is tried once.
    expect(await find([mx(0, ""), mx(10, "a.example"), mx(20, "A.example.")])).toEqual(["a.example"])
    // A server with the same or a lower preference than this service would send the mail back to it.
    expect(await find([mx(5, "a.example"), mx(10, "OWN.example."), mx(10, "b.example"), mx(20, "c.example")])).toEqual([
      "a.example",
    ])
  })

  it("have at most four addresses of each version, IPv4 first, and a failed look-up is an error if there is no address", async () => {
    const v4 = Array.from({ length: 5 }, (_, n) => `192.0.2.${n}`)
    const of = (A: unknown, AAAA: unknown) =>
      Effect.runPromise(
        Effect.match(Exchangers.addressesOf(resolver({ "a.example A": A, "a.example AAAA": AAAA }), "a.example"), {
          onSuccess: (found) => found,
          onFailure: ({ reply }) => reply.status,
        }),
      )
    expect(await of(v4, ["2001:db8::1"])).toEqual([...v4.slice(0, 4), "2001:db8::1"])
    expect(await of("ESERVFAIL", ["2001:db8::1"])).toEqual(["2001:db8::1"])
    expect(await of("ENODATA", "ENOTFOUND")).toEqual([])
    expect(await of("ENODATA", "ESERVFAIL")).toBe("4.4.3")
  })
})
