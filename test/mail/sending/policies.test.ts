/** MTA-STS policies: which are fetched, how often, and which are enforced. */
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { MtaSts, names } from "@svc/mail-gateway/mail/sending/MtaSts"
import { Timing } from "@svc/mail-gateway/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { dnsLayer } from "./Sinks.ts"

const text = (mode = "enforce", maxAge = 86_400) =>
  `version: STSv1\r\nmode: ${mode}\r\nmx: mx.example.org\r\nmax_age: ${maxAge}\r\n`

/** A domain with a policy that a test changes. */
const domain = () => {
  const state = {
    id: "1" as string | undefined,
    /** The records in DNS, or the code of a failure, in place of one record with the id. */
    record: undefined as string | ReadonlyArray<ReadonlyArray<string>> | undefined,
    response: { status: 200, type: "text/plain", body: text() } as
      | { status: number; type: string; body: string }
      | "silent",
    fetched: 0,
    request: undefined as readonly [url: string, atMost: number] | undefined,
  }
  const zone = {
    get "TXT _mta-sts.example.org"() {
      return state.record ?? (state.id === undefined ? "ESERVFAIL" : [[`v=STSv1; id=${state.id};`]])
    },
  }
  const web = Layer.mock(GuardedClient, {
    ask: (url, { atMost }) =>
      Effect.suspend(() => {
        state.fetched++
        state.request = [url.href, atMost]
        if (state.response === "silent") return Effect.never
        const { status, type, body } = state.response
        return Effect.succeed({ status, headers: new Headers({ "content-type": type }), body: Buffer.from(body) })
      }),
  })
  return { state, layer: Layer.fresh(MtaSts.layer).pipe(Layer.provide([dnsLayer(zone), web])) }
}

const isEnforced = Effect.flatMap(MtaSts, ({ enforced }) =>
  Effect.map(enforced("example.org"), (policy) => policy !== undefined),
)

describe("An MTA-STS policy", () => {
  it.effect.each([
    ["as plain text", { status: 200, type: "text/plain; charset=utf-8", body: text() }, true],
    ["as plain text in any case", { status: 200, type: "Text/Plain", body: text() }, true],
    ["in testing", { status: 200, type: "text/plain", body: text("testing") }, false],
    ["of none", { status: 200, type: "text/plain", body: text("none") }, false],
    ["as HTML", { status: 200, type: "text/html", body: text() }, false],
    ["without a type", { status: 200, type: "", body: text() }, false],
    ["that is missing", { status: 404, type: "text/plain", body: text() }, false],
    ["behind a redirect", { status: 301, type: "text/plain", body: text() }, false],
    ["with a field name in capitals", { status: 200, type: "text/plain", body: text().replace("mode", "Mode") }, false],
    ["of another version", { status: 200, type: "text/plain", body: text().replace("STSv1", "STSv2") }, false],
  ] as const)("%s is enforced or not", ([, response, expected]) => {
    const { state, layer } = domain()
    state.response = response
    return Effect.gen(function* () {
      expect(yield* isEnforced).toBe(expected)
    }).pipe(Effect.provide(layer))
  })

  it.effect("is fetched again only if its id changes or its time is over", () => {
    const { state, layer } = domain()
    return Effect.gen(function* () {
      for (const _ of [1, 2]) {
        expect([yield* isEnforced, state.fetched]).toEqual([true, 1])
        yield* TestClock.adjust(Timing.policyRetryMillis)
      }
      // A failed DNS query does not cancel the policy.
      state.id = undefined
      expect([yield* isEnforced, state.fetched]).toEqual([true, 1])
      state.id = "1"
      yield* TestClock.adjust("1 day")
      expect([yield* isEnforced, state.fetched]).toEqual([true, 2])
      yield* TestClock.adjust(Timing.policyRetryMillis)
      state.id = "2"
      state.response = { status: 200, type: "text/plain", body: text("none") }
      expect([yield* isEnforced, state.fetched]).toEqual([false, 3])
    }).pipe(Effect.provide(layer))
  })

  it.effect("is only fetched for a domain with one valid record of it", () => {
    const { state, layer } = domain()
    return Effect.gen(function* () {
      for (const record of [
        "ESERVFAIL",
        "ENOTFOUND",
        "ENODATA",
        [["v=spf1 -all"]],
        [["v=stsv1; id=1;"]],
        [["v=STSv1; id=1-1;"]],
        [["v=STSv1; id=1;"], ["v=STSv1; id=2;"]],
      ]) {
        state.record = record
        expect([yield* isEnforced, state.fetched], String(record)).toEqual([false, 0])
      }
      state.record = [["v=spf1 -all"], ["v=STSv1;", " id=1;"]]
      expect([yield* isEnforced, state.fetched]).toEqual([true, 1])
      expect(state.request).toEqual(["https://mta-sts.example.org/.well-known/mta-sts.txt", 64 * 1024])
    }).pipe(Effect.provide(layer))
  })

  it.effect("names servers, or all servers one label below a domain", () => {
    const { state, layer } = domain()
    state.response = {
      status: 200,
      type: "text/plain",
      body: text().replace("mx: ", "mx: *.example.net\r\nmx: "),
    }
    return Effect.gen(function* () {
      const policy = (yield* (yield* MtaSts).enforced("example.org"))!
      const named = ["mx.example.org", "a.example.net"]
      const others = ["a.example.org", "example.net", "a.b.example.net", "mx.example.org.evil.example"]
      expect([...named, ...others].filter((server) => names(policy, server))).toEqual(named)
    }).pipe(Effect.provide(layer))
  })

  it.effect("that cannot be fetched is tried again every five minutes, and the previous one applies meanwhile", () => {
    const { state, layer } = domain()
    return Effect.gen(function* () {
      expect(yield* isEnforced).toBe(true)
      state.id = "2"
      state.response = { status: 500, type: "text/plain", body: "" }
      yield* TestClock.adjust(Timing.policyRetryMillis - 1)
      expect([yield* isEnforced, state.fetched]).toEqual([true, 1])
      for (const fetched of [2, 3]) {
        yield* TestClock.adjust(fetched === 2 ? 1 : Timing.policyRetryMillis)
        for (const _ of [1, 2]) expect([yield* isEnforced, state.fetched]).toEqual([true, fetched])
      }
      // The old policy is not extended.
      const left = 24 * 60 * 60_000 - 2 * Timing.policyRetryMillis
      yield* TestClock.adjust(left - 1)
      expect(yield* isEnforced).toBe(true)
      yield* TestClock.adjust(1)
      expect(yield* isEnforced).toBe(false)
    }).pipe(Effect.provide(layer))
  })

  it.effect("of a server that does not respond is not waited for any longer after the timeout", () => {
    const { state, layer } = domain()
    state.response = "silent"
    return Effect.gen(function* () {
      const asked = yield* Effect.forkChild(isEnforced)
      yield* Effect.promise(() => new Promise(setImmediate))
      yield* TestClock.adjust(Timing.policyMillis - 1)
      expect([asked.pollUnsafe(), state.fetched]).toEqual([undefined, 1])
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(asked)).toBe(false)
    }).pipe(Effect.provide(layer))
  })
})
