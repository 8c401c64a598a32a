/** Queries of a validating name server, and which certificate a server needs according to its answers. */
import { describe, expect, it } from "@effect/vitest"
import { Dane } from "@svc/mail-gateway/mail/sending/dane/Dane"
import * as ValidatingResolver from "@svc/mail-gateway/mail/sending/dane/ValidatingResolver"
import { Timing } from "@svc/mail-gateway/Timing"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import { patience } from "../../harness/Eventually.ts"
import { a, type Has, mx, nameServer, type Names, tlsa } from "./NameServer.ts"

const at = (address: string): Has => ({ data: [a(address)] })

/** Names that count their queries. */
const counted = (all: Names) => {
  const queries: Array<string> = []
  const names = new Proxy(all, {
    get: (_, name: string) => {
      queries.push(name)
      return all[name]
    },
  })
  return { names, queries }
}

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "UDPWrap").length

const asking = (names: Names) =>
  Effect.flatMap(nameServer(names), ({ port }) => ValidatingResolver.make({ host: "127.0.0.1", port }))

describe("A validating resolver", () => {
  it.effect("tells names that do not exist from absent records, and failures from both", () =>
    Effect.gen(function* () {
      const ask = yield* asking({
        "A none.example": {},
        "A failed.example": { code: 2 },
        "A refused.example": { code: 5 },
      })
      expect(yield* ask("none.example", "A")).toMatchObject({ exists: true, values: [], isSecure: true })
      expect(yield* ask("nobody.example", "A")).toMatchObject({ exists: false, values: [], isSecure: true })
      expect(yield* Effect.flip(ask("failed.example", "A"))).toMatchObject({ code: "ESERVFAIL" })
      expect(yield* Effect.flip(ask("refused.example", "A"))).toMatchObject({ code: "ESERVFAIL" })
      expect(yield* Effect.flip(ask("no name", "A"))).toMatchObject({ code: "EBADNAME" })
    }).pipe(Effect.scoped),
  )

  it.effect("remembers an answer for a minute, in any spelling of the name, and no failure", () =>
    Effect.gen(function* () {
      const { names, queries } = counted({ "A a.example": at("192.0.2.1"), "A failed.example": { code: 2 } })
      const ask = yield* asking(names)
      for (const name of ["a.example", "A.Example", "a.example."]) {
        expect((yield* ask(name, "A")).values).toEqual(["192.0.2.1"])
      }
      expect(queries).toEqual(["A a.example"])
      yield* TestClock.adjust("1 minute")
      yield* ask("a.example", "A")
      for (const _ of [1, 2]) yield* Effect.flip(ask("failed.example", "A"))
      expect(queries).toEqual(["A a.example", "A a.example", "A failed.example", "A failed.example"])
      // Only the name server's own socket is open.
      yield* Effect.promise(() => vi.waitUntil(() => sockets() === 1, patience))
    }).pipe(Effect.scoped),
  )

  it.effect("ignores datagrams that answer another query, and trusts no such answer over TCP", () =>
    Effect.gen(function* () {
      const spoofed = { ...at("192.0.2.1"), isSpoofed: true }
      const ask = yield* asking({ "A a.example": spoofed, "A long.example": { ...spoofed, isLong: true } })
      expect((yield* ask("a.example", "A")).values).toEqual(["192.0.2.1"])
      expect(yield* Effect.flip(ask("long.example", "A"))).toMatchObject({ code: "EBADRESP" })
    }).pipe(Effect.scoped),
  )

  it.effect("repeats a query without an answer once, and fails if the server closes the connection", () =>
    Effect.gen(function* () {
      const { names, queries } = counted({
        "A silent.example": { isSilent: "udp" },
        "A cut.example": { isLong: true, isSilent: "tcp" },
      })
      const ask = yield* asking(names)
      const asked = yield* Effect.forkChild(Effect.flip(ask("silent.example", "A")))
      for (const count of [1, 2]) {
        yield* Effect.promise(() => vi.waitUntil(() => queries.length === count, patience))
        expect(asked.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust(Timing.dnsMillis)
      }
      expect(yield* Fiber.join(asked)).toMatchObject({ code: "ETIMEOUT" })
      expect(queries).toHaveLength(2)
      expect(yield* Effect.flip(ask("cut.example", "A"))).toMatchObject({ code: "ECONNRESET" })
    }).pipe(Effect.scoped),
  )
})

const record = tlsa(3, 1, 1, Buffer.alloc(32, 7))
const unusable = tlsa(3, 1, 1, Buffer.from("short"))
const [usage, selector, matching, data] = [3, 1, 1, Buffer.alloc(32, 7)]
const records = [{ usage, selector, matching, data }]

/** Returns the result of DANE for these records. */
const dane = (names: Names) =>
  Effect.flatMap(nameServer(names), ({ port }) =>
    Effect.provide(
      Effect.map(Dane, Option.getOrThrow),
      Dane.layer({ resolver: { host: "127.0.0.1", port }, port: 25 }),
    ),
  )

describe("DANE", () => {
  it.effect("looks up servers and addresses like every other resolver", () =>
    Effect.gen(function* () {
      const six = Buffer.from("20010db8000000000000000000000001", "hex")
      const { lookup, isSecure } = yield* dane({
        "MX a.example": { data: [mx(10, "mx.a.example")] },
        "MX open.example": { data: [mx(10, "mx.a.example")], isSecure: false },
        "MX failed.example": { code: 2 },
        "AAAA mx.a.example": { data: [six] },
        "A mx.a.example": {},
      })
      expect(yield* lookup("a.example", "MX")).toEqual([{ priority: 10, exchange: "mx.a.example" }])
      expect(yield* lookup("mx.a.example", "AAAA")).toEqual(["2001:db8:0:0:0:0:0:1"])
      const failure = (name: string, type: string) => Effect.map(Effect.flip(lookup(name, type)), ({ code }) => code)
      expect(yield* failure("mx.a.example", "A")).toBe("ENODATA")
      expect(yield* failure("nobody.example", "A")).toBe("ENOTFOUND")
      expect(yield* failure("a.example", "TXT")).toBe("EBADQUERY")
      const secure = yield* Effect.forEach(["a.example", "open.example", "failed.example"], isSecure)
      expect(secure).toEqual([true, false, false])
    }).pipe(Effect.scoped),
  )

  it.effect("requires the records of the alias that a server follows, or else of the server's own name", () =>
    Effect.gen(function* () {
      const real: Has = { alias: "real.example", data: [a("192.0.2.1")] }
      const { requirementOf } = yield* dane({
        "A both.example": real,
        "AAAA both.example": { alias: "real.example" },
        "TLSA _25._tcp.real.example": { data: [unusable, record] },
        "TLSA _25._tcp.both.example": { data: [unusable] },
        "A own.example": { ...real, alias: "bare.example" },
        "AAAA own.example": {},
        "TLSA _25._tcp.own.example": { data: [record] },
        // The name has no address now, but may get one.
        "A none.example": {},
        "AAAA none.example": {},
        "TLSA _25._tcp.none.example": { data: [unusable] },
        "A bare.example": at("192.0.2.1"),
        "AAAA bare.example": {},
        // An attacker could have added an address.
        "A half.example": at("192.0.2.1"),
        "AAAA half.example": { isSecure: false },
        "TLSA _25._tcp.half.example": { data: [record] },
      })
      expect(yield* requirementOf("both.example")).toEqual({ name: "real.example", records })
      expect(yield* requirementOf("own.example")).toEqual({ name: "own.example", records })
      expect(yield* requirementOf("none.example")).toEqual({ name: "none.example", records: [] })
      expect(yield* requirementOf("bare.example")).toBeUndefined()
      expect(yield* requirementOf("half.example")).toBeUndefined()
    }).pipe(Effect.scoped),
  )
})
