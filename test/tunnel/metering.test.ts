/** Reports of transferred bytes while an edge's requests or their responses are lost (docs/crash-matrix.md), on the test's clock. */
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import { Timing as ClusterTiming } from "@svc/cluster/Timing"
import { Unavailable } from "@svc/domain/problems/Problem"
import { makeUuidV7 } from "@svc/domain/Ids"
import { monotonicOf } from "@svc/domain/MonotonicTime"
import * as Metering from "@svc/tunnel-edge/edge/Metering"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, FiberSet, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"

const day = ClusterTiming.transferWindowMillis
const unavailable = new Unavailable({ detail: "away", retry_after_seconds: 1 })
const nextDay = Effect.flatMap(Clock.currentTimeMillis, (now) => TestClock.setTime((Math.floor(now / day) + 1) * day))

/** Returns the recorded bytes of each day. */
const counted = (org: string) =>
  Effect.map(
    rows<{ bytes: number }>((sql) => sql`select bytes::int from tunnel_transfer where org_id = ${org} order by day`),
    (found) => found.map(({ bytes }) => bytes),
  )

/** Creates the metering of an edge for an Org. `way` controls its requests: `away` loses the request, `deaf` loses the response. */
const metered = Effect.fnUntraced(function* (org: string) {
  const actor = (yield* Orgs).of(org)
  const edge = yield* makeUuidV7
  const { add } = yield* TunnelUsage
  const launch = yield* FiberSet.makeRuntime()
  const clock = yield* Clock.Clock
  const way: { is: "open" | "away" | "deaf"; lost: number } = { is: "open", lost: 0 }
  const metering = Metering.make({
    lease: Effect.fnUntraced(function* (_, report) {
      if (way.is === "away") return yield* unavailable
      const lease = yield* ask(actor.LeaseTransfer({ edge, ...report }))
      if (way.is === "open") return lease
      way.lost++
      return yield* unavailable
    }),
    record: add,
    run: launch,
    now: () => monotonicOf(clock),
  })
  return { metering, way }
})

layer(Layer.provideMerge(TunnelUsage.layer, actors({ quotas: { tunnel_transfer: 64 * 1024 * 1024 } })), {
  timeout: "60 seconds",
})("an edge", (it) => {
  it.effect("repeats a report whose reply was lost, and it is counted once, also across midnight", () =>
    Effect.gen(function* () {
      yield* nextDay
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, "ada")
      const { metering, way } = yield* metered(org)
      const passage = metering.open(org, id, () => {})
      const unheard = Effect.gen(function* () {
        way.is = "deaf"
        const before = way.lost
        const flushing = yield* Effect.forkChild(metering.flush)
        yield* waitUntil(
          Effect.sync(() => way.lost),
          (lost) => lost > before,
          0,
        )
        // Only the delay before the next attempt remains.
        yield* waitUntil(
          Effect.sync(() => flushing.pollUnsafe()),
          (exit) => exit !== undefined,
          Timing.leaseAgainMillis,
        )
        way.is = "open"
      })
      passage.count("in", 1_000)
      yield* unheard
      expect(yield* counted(org)).toEqual([1_000])
      passage.count("in", 200)
      yield* unheard
      expect(yield* counted(org)).toEqual([1_000])
      // The first flush repeats the report that may have arrived. The second flush sends the bytes counted since then.
      yield* metering.flush
      yield* metering.flush
      expect(yield* counted(org)).toEqual([1_200])

      passage.count("out", 30)
      yield* unheard
      yield* nextDay
      yield* metering.flush
      passage.count("out", 4)
      yield* metering.flush
      expect(yield* counted(org)).toEqual([1_230, 4])
      const [usage] = yield* rows(
        (sql) => sql`select bytes_in::int, bytes_out::int from tunnel_usage where identity_id = ${id}`,
      )
      expect(usage).toEqual({ bytes_in: 1_200, bytes_out: 34 })
    }).pipe(Effect.scoped),
  )

  it.effect("pauses at the end of its lease when the actor is unreachable, and reports everything afterwards", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, "grace")
      const { metering, way } = yield* metered(org)
      let room = 0
      const passage = metering.open(org, id, () => {})
      passage.onRoom = () => void room++
      way.is = "away"
      let passed = 0
      const pass = (bytes: number) => {
        passed += bytes
        return passage.count("in", bytes)
      }
      // The number of bytes that may pass before the first lease.
      expect(pass(60 * 1024)).toBe(true)
      expect(pass(4 * 1024)).toBe(false)
      yield* TestClock.adjust("3 seconds")
      expect(room).toBe(0)
      expect(yield* counted(org)).toEqual([])
      way.is = "open"
      yield* waitUntil(
        Effect.sync(() => room),
        (times) => times > 0,
        "1 second",
      )
      expect(pass(1_000)).toBe(true)
      yield* metering.flush
      expect((yield* counted(org)).reduce((sum, bytes) => sum + bytes, 0)).toBe(passed)
    }).pipe(Effect.scoped),
  )

  it.effect("loses only unreported usage when it crashes", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, "joan")
      const first = yield* metered(org)
      const passage = first.metering.open(org, id, () => {})
      passage.countRequest()
      passage.count("in", 1_000)
      yield* first.metering.flush
      passage.count("in", 500)
      // The first edge has crashed. Another edge takes over and counts from zero.
      const second = yield* metered(org)
      second.metering.open(org, id, () => {}).count("in", 70)
      yield* second.metering.flush
      expect(yield* counted(org)).toEqual([1_070])
      const [usage] = yield* rows(
        (sql) => sql`select bytes_in::int, requests::int from tunnel_usage where identity_id = ${id}`,
      )
      expect(usage).toEqual({ bytes_in: 1_070, requests: 1 })
    }).pipe(Effect.scoped),
  )
})
