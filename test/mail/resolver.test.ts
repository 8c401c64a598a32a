/** The cache of DNS answers. */
import { Resolver as NodeResolver } from "node:dns/promises"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { vi } from "vitest"

it.effect("An answer is cached for five minutes, an absence for one, and a failure not at all", () =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const failure = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))
    const answers: Readonly<Record<string, () => Promise<unknown>>> = {
      "A a.example": () => Promise.resolve(["192.0.2.1"]),
      "A none.example": () => failure("ENOTFOUND"),
      "MX a.example": () => failure("ENODATA"),
      "A down.example": () => failure("ESERVFAIL"),
      "A odd.example": () => Promise.reject(new Error("odd")),
    }
    const resolve = vi.spyOn(NodeResolver.prototype, "resolve").mockImplementation(((name: string, type: string) => {
      asked.push(`${type} ${name}`)
      return answers[`${type} ${name}`]!()
    }) as never)
    yield* Effect.addFinalizer(() => Effect.sync(() => resolve.mockRestore()))
    const { lookup } = yield* Resolver
    /** Looks up all names twice, and returns the results and the queries that reached DNS. */
    const round = Effect.gen(function* () {
      asked.length = 0
      const results: Array<unknown> = []
      for (const key of Object.keys(answers)) {
        const [type, name] = key.split(" ") as [string, string]
        for (const spelling of [name, name.toUpperCase()]) {
          results.push(
            yield* Effect.match(lookup(spelling, type), { onSuccess: String, onFailure: ({ code }) => code }),
          )
        }
      }
      return { results: results.filter((_, n) => n % 2 === 0), same: results.every((one, n) => one === results[n ^ 1]) }
    })
    const uncached = ["A down.example", "A down.example", "A odd.example", "A odd.example"]
    const absent = ["A none.example", "MX a.example"]
    const outcome = { results: ["192.0.2.1", "ENOTFOUND", "ENODATA", "ESERVFAIL", "EUNKNOWN"], same: true }
    expect(yield* round).toEqual(outcome)
    expect(asked).toEqual(["A a.example", ...absent, ...uncached])
    yield* TestClock.adjust(59_999)
    yield* round
    expect(asked).toEqual(uncached)
    yield* TestClock.adjust(1)
    yield* round
    expect(asked).toEqual([...absent, ...uncached])
    yield* TestClock.adjust("4 minutes")
    expect(yield* round).toEqual(outcome)
    expect(asked).toEqual(["A a.example", ...absent, ...uncached])
  }).pipe(Effect.provide(Layer.fresh(Resolver.layer))),
)
