/** What is kept for an `Idempotency-Key`, by the test's clock. */
import { IdempotencyRecords, type Scope, type StoredAnswer } from "@svc/cluster/idempotency/IdempotencyRecords"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { present, storesLayer } from "../harness/Stores.ts"

const answer: StoredAnswer = { status: 202, headers: { location: "/here" }, body: "{}" }

/** A key of a credential of its own. */
const fresh = Effect.gen(function* () {
  yield* present
  const records = yield* IdempotencyRecords
  const scope: Scope = { credentialId: yield* makeUuidV7, operation: "POST /api/identities", key: "k" }
  const claim = (request = "one", part: Partial<Scope> = {}) => records.claim({ ...scope, ...part }, request)
  const commandOf = Effect.fnUntraced(function* (claimed: ReturnType<typeof claim>) {
    const found = yield* claimed
    if (found._tag !== "Fresh") throw new Error(`was answered: ${JSON.stringify(found)}`)
    return found.commandId
  })
  return { claim, commandOf, settle: records.settle(scope, answer), release: records.release(scope) }
})

layer(storesLayer)("an Idempotency-Key", (it) => {
  it.effect("answers for a day, and then begins anew", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle } = yield* fresh
      const first = yield* commandOf(claim())
      yield* settle
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
      yield* TestClock.adjust("23 hours")
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
      yield* TestClock.adjust("1 hour")
      const again = yield* commandOf(claim("another request by now"))
      expect(again).not.toBe(first)
    }),
  )

  it.effect("is for one request of one credential at one place", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle } = yield* fresh
      const first = yield* commandOf(claim())
      const others = [{ key: "other" }, { operation: "POST /api/keys" }, { credentialId: yield* makeUuidV7 }]
      for (const other of others) expect(yield* commandOf(claim("one", other))).not.toBe(first)
      expect(yield* Effect.flip(claim("two"))).toMatchObject({ code: "idempotency_key_reused" })
      yield* settle
      expect(yield* Effect.flip(claim("two"))).toMatchObject({ code: "idempotency_key_reused" })
    }),
  )

  it.effect("lets one of many at once begin", () =>
    Effect.gen(function* () {
      const { claim } = yield* fresh
      const claims = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.result(claim()), {
        concurrency: "unbounded",
      })
      const codes = claims.map((one) => (one._tag === "Success" ? one.success._tag : one.failure.code))
      expect(codes.toSorted()).toEqual(["Fresh", ...Array<string>(19).fill("idempotency_key_in_progress")])
    }),
  )

  it.effect("of a request that a crash cut short goes on as the same command after a minute, for that request", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle } = yield* fresh
      const first = yield* commandOf(claim())
      expect(yield* Effect.flip(claim())).toMatchObject({ code: "idempotency_key_in_progress", agent_hint: "wait" })
      yield* TestClock.adjust("1 minute")
      expect(yield* Effect.flip(claim("two"))).toMatchObject({ code: "idempotency_key_reused" })
      expect(yield* commandOf(claim())).toBe(first)
      // It is taken up by one.
      expect(yield* Effect.flip(claim())).toMatchObject({ code: "idempotency_key_in_progress" })
      yield* settle
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
    }),
  )

  it.effect("of a request that was not decided is free at once, for the same command", () =>
    Effect.gen(function* () {
      const { claim, commandOf, release } = yield* fresh
      const first = yield* commandOf(claim())
      yield* release
      expect(yield* commandOf(claim())).toBe(first)
    }),
  )
})
