/** The report of a process about its parts, from which probes decide whether it gets requests. */
import fs from "node:fs"
import { diskHealth } from "@svc/cli/serve/Store"
import { expect, it } from "@effect/vitest"
import * as Cluster from "@svc/cluster/Cluster"
import { check, type Finding, Health } from "@svc/cluster/health/Health"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Fiber, Layer } from "effect"
import { ShardId, Sharding } from "effect/cluster"
import { TestClock } from "effect/testing"
import { describe, vi } from "vitest"

const part = (name: string, essential: boolean, probe: Effect.Effect<Finding, unknown>) => check(name, essential, probe)
const finding = (status: Finding["status"]) => Effect.succeed<Finding>({ status, detail: status })
const reportOf = (...parts: ReadonlyArray<Layer.Layer<never, never, Health>>) =>
  Effect.gen(function* () {
    const health = yield* Health
    return yield* Effect.scoped(
      Effect.andThen(
        Effect.all(parts.map((one) => Layer.build(Layer.fresh(one)))),
        Effect.gen(function* () {
          const report = yield* Effect.forkChild(health.report)
          yield* TestClock.adjust(Timing.healthProbe)
          return yield* Fiber.join(report)
        }),
      ),
    )
  }).pipe(Effect.provide(Layer.fresh(Health.layer)))

describe("The health report", () => {
  it.effect.each([
    ["pass", [finding("pass"), true]],
    ["warn", [finding("warn"), true]],
    ["fail", [finding("fail"), true]],
    ["warn", [finding("fail"), false]],
    ["warn", [finding("warn"), false]],
    ["fail", [Effect.fail("broken"), true]],
    ["fail", [Effect.die("broken"), true]],
    ["warn", [Effect.never, false]],
    ["fail", [Effect.never, true]],
  ] as const)("is %s with a part that is %j", ([status, [probe, essential]]) =>
    Effect.gen(function* () {
      const around = [part("first", true, finding("pass")), part("last", false, finding("pass"))] as const
      const report = yield* reportOf(around[0], part("middle", essential, probe), around[1])
      expect(report.status).toBe(status)
      expect(report.components.map(({ name }) => name)).toEqual(["first", "middle", "last"])
    }),
  )

  it.effect.each([
    [3, "pass"],
    [1.99, "warn"],
    [0.19, "fail"],
  ] as const)("says with %d GiB of free space that the embedded database's disk is %s", ([gibibytes, status]) =>
    Effect.gen(function* () {
      const free = vi.spyOn(fs.promises, "statfs").mockResolvedValue({ bavail: gibibytes, bsize: 1024 ** 3 } as never)
      const { components } = yield* reportOf(diskHealth({ connection: {}, place: "", embeddedHome: "/home" }))
      free.mockRestore()
      const detail = `${gibibytes.toFixed(1)} GiB free`
      expect(components).toMatchObject([{ name: "disk", essential: false, status, detail }])
    }),
  )

  it.effect("omits a part that has ended, and says what a part reports", () =>
    Effect.gen(function* () {
      const health = yield* Health
      yield* Effect.scoped(health.register({ name: "ended", essential: true, probe: finding("fail") }))
      expect(yield* health.report).toMatchObject({ status: "pass", components: [] })
      const { components } = yield* reportOf(part("slow", true, Effect.never), part("warned", true, finding("warn")))
      expect(components).toMatchObject([
        { name: "slow", essential: true, status: "fail", detail: "does not answer" },
        { name: "warned", essential: true, status: "warn", detail: "warn" },
      ])
    }).pipe(Effect.provide(Layer.fresh(Health.layer))),
  )

  it.effect("says that a process accepts no work until it hosts actors, and when it stops", () => {
    const state = { hosts: new Set<number>(), isShutdown: false }
    const sharding = Layer.mock(Sharding.Sharding, {
      isShutdown: Effect.sync(() => state.isShutdown),
      getShardId: () => ShardId.make("default", 1),
      hasShardId: ({ id }) => state.hosts.has(id),
    })
    const cluster = (hostsActors: boolean) => Layer.provide(Cluster.health(hostsActors), sharding)
    return Effect.gen(function* () {
      const health = yield* Health
      yield* Layer.build(cluster(true))
      const report = Effect.map(health.report, ({ status, components: [one] }) => [status, one?.detail])
      expect(yield* report).toEqual(["fail", "has not joined the cluster yet"])
      state.hosts.add(Cluster.shardsPerGroup)
      expect(yield* report).toEqual(["pass", null])
      // Another process hosts the actors, and requests to them are served.
      state.hosts.clear()
      expect(yield* report).toEqual(["warn", "hosts no actors at the moment"])
      expect(yield* reportOf(cluster(false))).toMatchObject({ status: "pass" })
      state.isShutdown = true
      expect(yield* report).toEqual(["fail", "is shutting down"])
      expect(yield* reportOf(cluster(false))).toMatchObject({ status: "fail" })
    }).pipe(Effect.provide(Layer.fresh(Health.layer)), Effect.scoped)
  })
})
