/** The rotation of the keys that sign identity tokens, on the test's clock. */
import { expect, layer } from "@effect/vitest"
import { IssuerKeys } from "@svc/cluster/proof/IssuerKeys"
import { Unhurried } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { foundation } from "../harness/Stores.ts"

const issuer = "https://issuer.example"
const keysLayer = IssuerKeys.layerOf(issuer).pipe(Layer.provideMerge(foundation), Layer.orDie)

/** A process that started now, without cached keys. */
const fresh = <A, E>(use: (keys: IssuerKeys["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(IssuerKeys, use).pipe(Effect.provide(Layer.fresh(IssuerKeys.layerOf(issuer))))

const kidsOf = (keys: ReadonlyArray<Readonly<Record<string, unknown>>>) => keys.map(({ kid }) => kid)

layer(keysLayer)("issuer keys", (it) => {
  it.effect("are published a day before they sign, and a day after they signed last", () =>
    Effect.gen(function* () {
      const keys = yield* IssuerKeys
      const first = yield* keys.signing("RS256")
      expect(kidsOf(yield* keys.published)).toContain(first.kid)
      const rotated = yield* keys.rotate
      expect(rotated.map(({ state }) => state).toSorted()).toEqual(["signing", "signing", "waiting", "waiting"])
      expect(yield* keys.rotate).toEqual(rotated)

      const next = rotated.find(({ state, algorithm }) => state === "waiting" && algorithm === "RS256")!
      expect(kidsOf(yield* fresh((own) => own.published))).toContain(next.selector)
      expect((yield* fresh((own) => own.signing("RS256"))).kid).toBe(first.kid)
      // A process that showed its keys before the rotation shows the next one when it has read them again.
      yield* TestClock.adjust(Timing.issuerReloadMillis)
      expect(kidsOf(yield* keys.published)).toContain(next.selector)

      yield* TestClock.adjust(Timing.issuerWaitMillis)
      expect((yield* keys.signing("RS256")).kid).toBe(next.selector)
      expect(kidsOf(yield* keys.published)).toEqual(expect.arrayContaining([first.kid, next.selector]))

      yield* TestClock.adjust(Timing.issuerOverlapMillis)
      const last = kidsOf(yield* keys.published)
      expect(last).not.toContain(first.kid)
      expect(last).toContain(next.selector)
    }),
  )

  it.effect("are stored without their private parts, which are sealed by name", () =>
    Effect.gen(function* () {
      const keys = yield* IssuerKeys
      yield* keys.list
      const sql = yield* Unhurried
      const rows = yield* sql<{ selector: string; public_key: string }>`select selector, public_key from issuer_key`
      for (const { public_key } of rows) expect(public_key).not.toMatch(/"(?:d|p|q)":/)
      const sealed = yield* sql<{ name: string }>`select name from service_key where starts_with(name, 'issuer/')`
      expect(sealed.map(({ name }) => name).toSorted()).toEqual(
        rows.map(({ selector }) => `issuer/${issuer}/${selector}`).toSorted(),
      )
    }),
  )
})
