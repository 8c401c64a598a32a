/** Greylisting and block lists: which clients are deferred or refused. */
import { expect, layer } from "@effect/vitest"
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Timing } from "@svc/mail-gateway/Timing"
import { Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { databaseLayer } from "../harness/Database.ts"

const nobody = Layer.succeed(Resolver, { lookup: () => Effect.fail(new LookupFailed({ code: "ETIMEOUT" })) })
const screening = (greylisting: boolean, blockLists: ReadonlyArray<string> = []) =>
  Screening.layer({ greylisting, blockLists }).pipe(Layer.provide([nobody, databaseLayer]))

layer(screening(true, ["list.example"]))("An unknown client", (it) => {
  it.effect("is deferred, and accepted when it retries after a minute from its network", () =>
    Effect.gen(function* () {
      const { isTooNew, isListed } = yield* Screening
      const seen = (address: string, to = "ada@mail.localhost") => isTooNew(address, "a@example.org", to)
      expect(yield* seen("2001:db8::1")).toBe(true)
      yield* TestClock.adjust("59 seconds")
      expect(yield* seen("2001:db8::1")).toBe(true)
      yield* TestClock.adjust("1 second")
      expect(yield* seen("2001:db8::2")).toBe(false)
      expect(yield* isTooNew("2001:db8::2", "A@Example.org", "ADA@mail.localhost")).toBe(false)
      expect(yield* seen("2001:db8::2", "grace@mail.localhost")).toBe(true)
      expect(yield* seen("2001:db8:0:1::2")).toBe(true)
      expect(yield* isListed("203.0.113.1")).toBe(false)
    }),
  )
})

layer(screening(false))("Without greylisting", (it) => {
  it.effect("every client is accepted", () =>
    Effect.gen(function* () {
      const { isTooNew } = yield* Screening
      expect(yield* isTooNew("203.0.113.1", "a@example.org", "ada@mail.localhost")).toBe(false)
    }),
  )
})

/** The answers of a block list, by the queried name. */
const answers: Readonly<Record<string, string>> = {
  "1.113.0.203.list.example": "127.0.0.2",
  "2.113.0.203.list.example": "127.255.255.254",
  "3.113.0.203.list.example": "203.0.113.3",
}
const lists = Layer.succeed(Resolver, {
  lookup: (name) =>
    answers[name] === undefined
      ? Effect.fail(new LookupFailed({ code: "ENOTFOUND" }))
      : Effect.succeed([answers[name]]),
})
const listed = Screening.layer({ greylisting: false, blockLists: ["other.example", "list.example"] })

layer(listed.pipe(Layer.provide([lists, databaseLayer])))("A client", (it) => {
  it.effect("is listed by an answer in 127.0.0.0/8, and not by the answer to a query that the list refused", () =>
    Effect.gen(function* () {
      const { isListed } = yield* Screening
      const all = ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"]
      expect(yield* Effect.forEach(all, isListed)).toEqual([true, false, false, false])
    }),
  )
})

const silent = Layer.succeed(Resolver, { lookup: () => Effect.never })
layer(listed.pipe(Layer.provide([silent, databaseLayer])))("A block list that does not respond", (it) => {
  it.effect("lists nobody, and is waited for no longer than its timeout", () =>
    Effect.gen(function* () {
      const { isListed } = yield* Screening
      const asked = yield* Effect.forkChild(isListed("203.0.113.1"))
      yield* Effect.yieldNow
      yield* TestClock.adjust(Duration.toMillis(Timing.blockList) - 1)
      expect(asked.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(asked)).toBe(false)
    }),
  )
})
