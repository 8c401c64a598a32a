/** The keys of agents: the limits of reading them, for how long they are cached, and which answers are temporary failures. */
import { expect, it } from "@effect/vitest"
import { AgentKeys } from "@svc/cluster/proof/AgentKeys"
import { didDocument } from "@svc/cluster/proof/DidDocument"
import { DidDocuments } from "@svc/cluster/proof/DidDocuments"
import { formerAtMost } from "@svc/cluster/proof/KeyHandlers"
import { Timing } from "@svc/cluster/Timing"
import { Addresses } from "@svc/domain/Addresses"
import { registeredAtMost } from "@svc/domain/proof/SigningKey"
import { Context, Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { agentKey, type Answer, foreignSites, ok } from "./ForeignSites.ts"

const [one, two] = [await agentKey(), await agentKey()]
const fresh = Effect.promise(agentKey)
const directory = "/.well-known/http-message-signatures-directory"

describe("The keys of an origin", () => {
  const setUp = Effect.gen(function* () {
    const sites = foreignSites()
    const keys = yield* Effect.map(Layer.build(AgentKeys.layer.pipe(Layer.provide(sites.layer))), (context) =>
      Context.get(context, AgentKeys),
    )
    const origin = "https://agent.example"
    const find = (kid: string, reader = "reader", of = origin) => Effect.result(keys.find(of, kid, reader))
    return { sites, keys, origin, find, answer: sites.answer(origin + directory) }
  })

  it.effect("are read again when they expire, which is after a minute to a day", () =>
    Effect.gen(function* () {
      const { sites, keys, origin, find, answer } = yield* setUp
      for (const [header, seconds] of [
        ["", 60],
        ["max-age=59", 60],
        ["public, max-age=120", 120],
        ["max-age=999999", 86_400],
      ] as const) {
        yield* TestClock.adjust("2 days")
        answer(() => ok({ keys: [one.jwk] }, { "cache-control": header }))
        const before = sites.asked.length
        const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
        const found = yield* find(one.kid)
        expect([...(Result.isSuccess(found) ? found.success.keys.keys() : [])]).toEqual([one.kid])
        const until = now + seconds * 1000
        expect(keys.cached(origin, one.kid, until - 1)?.key.equals(one.key)).toBe(true)
        expect(keys.cached(origin, one.kid, until)).toBeUndefined()
        expect(keys.cached(origin, two.kid, now)).toBeUndefined()
        yield* TestClock.adjust(seconds * 1000 - 1)
        yield* find(one.kid)
        expect([header, sites.asked.length]).toEqual([header, before + 1])
        yield* TestClock.adjust(1)
        yield* find(one.kid)
        expect([header, sites.asked.length]).toEqual([header, before + 2])
      }
    }),
  )

  it.effect("are read again for an unknown key, at most once a second", () =>
    Effect.gen(function* () {
      const { sites, find, answer } = yield* setUp
      answer(() => ok({ keys: [one.jwk] }))
      yield* find(one.kid)
      answer(() => ok({ keys: [one.jwk, two.jwk] }))
      const waiting = yield* Effect.forkChild(find(two.kid))
      yield* TestClock.adjust(Timing.agentKeysAgainMillis - 1)
      expect(sites.asked.length).toBe(1)
      yield* TestClock.adjust(1)
      const found = yield* Fiber.join(waiting)
      expect([sites.asked.length, Result.isSuccess(found) && found.success.keys.has(two.kid)]).toEqual([2, true])
    }),
  )

  it.effect("are at most 20, and only those of Ed25519", () =>
    Effect.gen(function* () {
      const { find, answer } = yield* setUp
      const { kty, crv } = one.jwk
      const unusable = [
        { ...one.jwk, kty: "EC" },
        { ...one.jwk, crv: "X25519" },
        { kty, crv },
        { ...one.jwk, x: "AA" },
      ]
      answer(() => ok({ keys: [...unusable, ...Array.from({ length: 15 }, () => unusable[0]), one.jwk, two.jwk] }))
      const found = yield* find(one.kid)
      expect(Result.isSuccess(found) && [...found.success.keys.keys()]).toEqual([one.kid])
    }),
  )

  it.effect("that cannot be read are requested again after ten seconds", () =>
    Effect.gen(function* () {
      const { sites, find, answer } = yield* setUp
      for (const [given, message] of [
        [() => ok({ keys: "none" }), "The origin has no directory of keys (status 200)."],
        [() => ({ ...ok({ keys: [] }), status: 404 }), "The origin has no directory of keys (status 404)."],
        [() => "tls" as const, "The directory of keys cannot be read (tls)."],
      ] as const) {
        answer(given)
        const before = sites.asked.length
        const failure = yield* find(one.kid)
        expect(failure).toMatchObject({ failure: { message, isBusy: false } })
        yield* TestClock.adjust(Timing.agentKeysFailedMillis - 1)
        expect(yield* find(one.kid)).toEqual(failure)
        expect(sites.asked.length).toBe(before + 1)
        yield* TestClock.adjust(1)
      }
      answer(() => ok({ keys: [one.jwk] }))
      expect(Result.isSuccess(yield* find(one.kid))).toBe(true)
    }),
  )

  it.effect("are read once for concurrent requests, with a timeout of three seconds", () =>
    Effect.gen(function* () {
      const { sites, find, answer } = yield* setUp
      answer(() => "silence")
      const both = yield* Effect.forkChild(
        Effect.all([find(one.kid, "one"), find(two.kid, "two")], { concurrency: "unbounded" }),
      )
      yield* TestClock.adjust(Timing.documentTimeoutMillis)
      const late = { failure: { message: "The directory of keys did not respond in time.", isBusy: false } }
      expect(yield* Fiber.join(both)).toMatchObject([late, late])
      expect(sites.asked.length).toBe(1)
    }),
  )

  it.effect("of eight origins are read at the same time for one reader, and of 64 in all", () =>
    Effect.gen(function* () {
      const { sites, find } = yield* setUp
      sites.otherwise(() => "silence")
      const started = (n: number) => find(one.kid, `reader ${Math.floor(n / 8)}`, `https://n${n}.example`)
      const fibers: Array<Fiber.Fiber<unknown>> = []
      const start = (from: number, to: number) =>
        Effect.gen(function* () {
          for (let n = from; n < to; n++) fibers.push(yield* Effect.forkChild(started(n)))
          yield* TestClock.adjust(0)
        })
      const busy = { message: "Too many directories of keys are being read at the moment.", isBusy: true }
      const refused = (reader: string) =>
        Effect.gen(function* () {
          const ninth = yield* Effect.forkChild(find(one.kid, reader, "https://ninth.example"))
          yield* TestClock.adjust(0)
          expect(ninth.pollUnsafe()).toMatchObject({ _tag: "Success", value: { failure: busy } })
        })
      yield* start(0, 8)
      yield* refused("reader 0")
      yield* start(8, 64)
      expect(sites.asked.length).toBe(64)
      yield* refused("another")
      yield* TestClock.adjust(Timing.documentTimeoutMillis)
      yield* Effect.forEach(fibers, Fiber.join)
      // The refusal was not cached, and the places are free again.
      sites.otherwise(() => ok({ keys: [one.jwk] }))
      const again = Array.from({ length: 8 }, (_, n) => find(one.kid, "reader 0", `https://again${n}.example`))
      const found = yield* Effect.all([...again.slice(1), find(one.kid, "reader 0", "https://ninth.example")], {
        concurrency: "unbounded",
      })
      expect(found.filter(Result.isSuccess).length).toBe(8)
    }),
  )

  it.effect("of an Identity come from the store, with a key that was rotated less than five minutes ago", () =>
    Effect.gen(function* () {
      const { sites, keys, find } = yield* setUp
      yield* TestClock.adjust("1 hour")
      const ago = (millis: number) =>
        Effect.clockWith((clock) => Effect.map(clock.currentTimeMillis, (now) => new Date(now - millis)))
      const [registered, recent, former] = [yield* fresh, yield* fresh, yield* fresh]
      sites.store.identities.set("ada", {
        handle: "Ada",
        keys: [
          { ...one, origin: "service", retired_at: null },
          { ...registered, origin: "agent", retired_at: null },
          { ...recent, origin: "service", retired_at: yield* ago(Timing.directoryOverlapMillis - 1) },
          { ...former, origin: "service", retired_at: yield* ago(Timing.directoryOverlapMillis) },
        ],
      })
      const own = "https://ada.tunnel.example"
      const found = yield* find(one.kid, "reader", own)
      expect(Result.isSuccess(found) && [found.success.handle, ...found.success.keys.keys()]).toEqual([
        "Ada",
        one.kid,
        recent.kid,
      ])
      const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      expect(keys.cached(own, one.kid, now + Timing.ownKeysFreshMillis - 1)?.handle).toBe("Ada")
      expect(keys.cached(own, one.kid, now + Timing.ownKeysFreshMillis)).toBeUndefined()
      expect(sites.asked).toEqual([])
      // Another port or an unknown name of the domain is an origin like any other.
      for (const other of ["https://ada.tunnel.example:8443", "https://eve.tunnel.example"]) {
        expect(yield* find(one.kid, "reader", other)).toMatchObject({ failure: { isBusy: false } })
        expect(sites.asked.at(-1)).toBe(other + directory)
      }
    }),
  )

  it.effect("of an Identity are read again immediately after the store was unavailable", () =>
    Effect.gen(function* () {
      const { sites, find } = yield* setUp
      sites.store.identities.set("ada", { handle: "ada", keys: [{ ...one, origin: "service", retired_at: null }] })
      sites.store.isDown = true
      const own = "https://ada.tunnel.example"
      expect(yield* find(one.kid, "reader", own)).toMatchObject({
        failure: { message: "The keys could not be read.", isBusy: true },
      })
      sites.store.isDown = false
      expect(Result.isSuccess(yield* find(one.kid, "reader", own))).toBe(true)
    }),
  )
})

describe("The DID document of a mail's author", () => {
  const did = "did:web:agents.example"
  const setUp = Effect.gen(function* () {
    const sites = foreignSites()
    const context = yield* Layer.build(DidDocuments.layer.pipe(Layer.provide(sites.layer)))
    const documents = Context.get(context, DidDocuments)
    return { sites, names: documents.names, answer: sites.answer("https://agents.example/.well-known/did.json") }
  })
  const naming = (...alsoKnownAs: ReadonlyArray<unknown>) => ({ id: did, alsoKnownAs })

  it.effect.each([
    [naming("mailto:ada@mail.example"), true],
    [naming("https://agents.example", 5, null, "MAILTO:ada%40MAIL.example"), true],
    [naming("mailto:eve@mail.example"), false],
    [naming("mailto:ada@mail.example?subject=x"), false],
    [naming("mailto:%"), false],
    [naming("mailto:ada"), false],
    [naming("ada@mail.example"), false],
    [naming(), false],
    [{ id: did }, false],
    [{ id: did, alsoKnownAs: "mailto:ada@mail.example" }, false],
    [{ ...naming("mailto:ada@mail.example"), id: "did:web:mallory.example" }, false],
  ] as const)("names the address only if it is of this DID and lists its mailto: %j is %s", ([document, expected]) =>
    Effect.gen(function* () {
      const { answer, names } = yield* setUp
      answer(() => ok(document))
      expect(yield* names(did, "ada@MAIL.example")).toBe(expected)
      expect(yield* names(did, "")).toBe(false)
    }),
  )

  it.effect("is read if the Identity has all keys that it may publish, and a long Handle at a long domain", () =>
    Effect.gen(function* () {
      const { answer, names, sites } = yield* setUp
      const [handle, host] = ["a".repeat(32), `${"b".repeat(63)}.${"c".repeat(63)}.example`]
      const context = yield* Layer.build(sites.layer)
      const book = { ...Context.get(context, Addresses), profileBase: `https://${host}`, mailDomain: host }
      const key = { kid: one.kid, jwk: { ...one.jwk, kid: one.kid, alg: "EdDSA", use: "sig" }, retired_at: null }
      const keys = Array.from({ length: 1 + formerAtMost + registeredAtMost }, () => key) as never
      const document = didDocument(book, { handle, keys }, did)
      answer(() => ok(document))
      expect(yield* names(did, `${handle}@${host}`)).toBe(true)
    }),
  )

  it.effect.each<readonly [() => Answer, boolean]>([
    [() => ok({}, { "content-type": "text/html" }), false],
    [() => ok(["list"]), false],
    [() => ({ ...ok({}), status: 404 }), false],
    [() => ({ ...ok({}), status: 428 }), false],
    [() => ({ ...ok({}), status: 429 }), true],
    [() => ({ ...ok({}), status: 499 }), false],
    [() => ({ ...ok({}), status: 500 }), true],
    [() => "too_large", false],
    [() => "refused_address", false],
    [() => "dns", true],
    [() => "connection", true],
    [() => "silence", true],
  ])("is tried again only after a temporary failure: %s", ([given, isTemporary]) =>
    Effect.gen(function* () {
      const { answer, names, sites } = yield* setUp
      answer(given)
      const reading = yield* Effect.forkChild(Effect.result(names(did, "ada@mail.example")))
      yield* TestClock.adjust(given() === "silence" ? Timing.documentTimeoutMillis : 0)
      expect(yield* Fiber.join(reading)).toMatchObject({ failure: { isTemporary } })
      // A failure is cached for ten seconds, a document for a minute.
      answer(() => ok(naming("mailto:ada@mail.example")))
      yield* TestClock.adjust(Timing.agentKeysFailedMillis - 1)
      expect(Result.isFailure(yield* Effect.result(names(did, "ada@mail.example")))).toBe(true)
      expect(sites.asked.length).toBe(1)
      yield* TestClock.adjust(1)
      expect(yield* names(did, "ada@mail.example")).toBe(true)
      yield* TestClock.adjust(Timing.agentKeysFreshMillis.least - 1)
      yield* names(did, "ada@mail.example")
      expect(sites.asked.length).toBe(2)
    }),
  )

  it.effect("of an Identity comes from the store, which may be unavailable", () =>
    Effect.gen(function* () {
      const { sites, names } = yield* setUp
      sites.store.identities.set("ada", { handle: "ada", keys: [{ ...one, origin: "service", retired_at: null }] })
      const own = "did:web:svc.example:%40ada"
      expect(yield* names(own, "ada@mail.svc.example")).toBe(true)
      expect(yield* names(own, "eve@mail.svc.example")).toBe(false)
      expect(yield* names("did:web:svc.example:%40eve", "eve@mail.svc.example")).toBe(false)
      expect(yield* names("did:key:z6Mk", "eve@mail.svc.example")).toBe(false)
      expect(sites.asked).toEqual([])
      sites.store.isDown = true
      expect(yield* Effect.result(names(own, "ada@mail.svc.example"))).toMatchObject({ failure: { isTemporary: true } })
    }),
  )

  it.effect("is one of at most 16 that are read at the same time", () =>
    Effect.gen(function* () {
      const { sites, names } = yield* setUp
      sites.otherwise(() => "silence")
      for (let n = 0; n < 17; n++)
        yield* Effect.forkChild(Effect.result(names(`did:web:n${n}.example`, "ada@mail.example")))
      yield* TestClock.adjust(0)
      expect(sites.asked.length).toBe(16)
      yield* TestClock.adjust(Timing.documentTimeoutMillis)
      expect(sites.asked.length).toBe(17)
    }),
  )
})
