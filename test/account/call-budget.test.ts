import * as CallBudget from "@svc/cluster/account/CallBudget"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Layer } from "effect"
import { makeOrg, sealingLayer } from "../harness/Stores.ts"
import { databaseLayer } from "../harness/Database.ts"

const quotas = { calls: 600, identity_create: 10, handle_check: 60 }
const minute = 60_000
/** One second before a full minute. */
const late = 1_000 * minute - 1_000

const actorOf = (org: string) => Effect.map(Writes, (sql) => CallBudget.make(sql, org, quotas))
/** Returns the total that an actor grants to `asked` leases. */
const granted = Effect.fnUntraced(function* (
  actor: Effect.Success<ReturnType<typeof actorOf>>,
  policy: "calls" | "identity_create",
  leases: number,
  want: number,
  now: number,
) {
  let sum = 0
  for (let i = 0; i < leases; i++) sum += (yield* actor.lease(policy, want, now)).granted
  return sum
})

layer(Layer.provideMerge(sealingLayer, databaseLayer))("an Org's call budget", (it) => {
  it.effect("is the full quota for a new account late in the minute, and again in the next minute", () =>
    Effect.gen(function* () {
      const actor = yield* actorOf(yield* makeOrg)
      expect(yield* granted(actor, "identity_create", 11, 1, late)).toBe(10)
      expect(yield* actor.lease("identity_create", 1, late)).toEqual({ granted: 0, left: 0, ends_in: 1_000 })
      expect(yield* granted(actor, "identity_create", 11, 1, late + 1_000)).toBe(10)
    }),
  )

  it.effect("is the full quota for an actor that is activated in a later minute", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      expect(yield* granted(yield* actorOf(org), "calls", 10, 30, late)).toBe(300)
      expect(yield* granted(yield* actorOf(org), "calls", 30, 30, late + 5 * minute)).toBe(600)
    }),
  )

  it.effect("never exceeds the quota over consecutive or concurrent actors", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const frozen = yield* actorOf(org)
      const before = yield* granted(frozen, "calls", 8, 30, late)
      expect(before).toBe(240)
      const next = yield* actorOf(org)
      const sums = yield* Effect.all(
        [
          granted(next, "calls", 30, 30, late),
          granted(frozen, "calls", 30, 30, late),
          granted(yield* actorOf(org), "calls", 30, 30, late),
        ],
        { concurrency: 3 },
      )
      const total = before + sums.reduce((a, b) => a + b)
      expect(total).toBeLessThanOrEqual(600)
      // Each process leaves at most a block unused.
      expect(total).toBeGreaterThanOrEqual(600 - 150)
    }),
  )

  it.effect("leases nothing to an actor that is still in the minute before", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const [current, frozen] = [yield* actorOf(org), yield* actorOf(org)]
      expect(yield* granted(current, "calls", 30, 30, late + minute)).toBe(600)
      expect(yield* granted(frozen, "calls", 30, 30, late)).toBe(0)
      expect(yield* granted(yield* actorOf(org), "calls", 30, 30, late + minute)).toBe(0)
    }),
  )

  it.effect("leases the requested number of calls, even more than a block", () =>
    Effect.gen(function* () {
      const actor = yield* actorOf(yield* makeOrg)
      expect(yield* actor.lease("calls", 500, late)).toMatchObject({ granted: 500, left: 100 })
      expect(yield* actor.lease("calls", 500, late)).toMatchObject({ granted: 100, left: 0 })
      expect(yield* (yield* actorOf(yield* makeUuidV7)).lease("calls", 1, late)).toMatchObject({ granted: 0, left: 0 })
    }),
  )

  it.effect("loses at most a quarter of the quota in a crash, although some of it was leased", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      // The first block is leased to the last call.
      expect(yield* granted(yield* actorOf(org), "calls", 5, 30, late)).toBe(150)
      expect(yield* granted(yield* actorOf(org), "calls", 1, 30, late)).toBe(30)
      expect(yield* granted(yield* actorOf(org), "calls", 30, 30, late)).toBe(300)
    }),
  )

  it.effect("of a minute more than two minutes ahead is returned, because a wrong clock took it", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const take = (now: number) => Effect.flatMap(actorOf(org), (actor) => granted(actor, "calls", 30, 30, now))
      expect(yield* take(late + 3 * minute)).toBe(600)
      expect(yield* take(late + minute)).toBe(0)
      expect(yield* take(late)).toBe(600)
    }),
  )
})
