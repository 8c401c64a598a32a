/** Which TCP ports of the pool may be allotted. */
import { Writes } from "@svc/cluster/store/Database"
import { Health } from "@svc/cluster/health/Health"
import { runAll } from "@svc/cluster/observe/Collectors"
import * as TunnelPorts from "@svc/cluster/tunnel/TunnelPorts"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Metric } from "effect"
import { withoutReferences } from "../harness/GeneratedRows.ts"
import { storesLayer } from "../harness/Stores.ts"

const day = 86_400_000

layer(storesLayer)("A freed TCP port", (it) => {
  it.effect("rests for 30 days, and is only allotted within the configured range", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const at = new Date("2026-11-25T12:00:00.000Z")
      const before = (millis: number) => new Date(at.getTime() - millis)
      yield* sql`
        insert into tunnel_port (port, freed_at) values
          (61001, ${before(30 * day)}), (61002, ${before(30 * day - 1)}), (61003, ${at}), (61004, null), (61005, null)`
      const free = yield* sql`${TunnelPorts.freePort(sql, { first: 61_001, last: 61_004 }, at)} order by port`
      expect(free).toEqual([{ port: 61_001 }, { port: 61_004 }])
    }),
  )

  it.effect("is counted as free, and health warns when 90 percent of the configured range are allotted", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      yield* Layer.build(TunnelPorts.layer({ first: 62_001, last: 62_020 }))
      const used = Effect.sync(() =>
        Metric.snapshotUnsafe(Context.empty())
          .filter(({ id }) => id.startsWith("svc_tunnel_ports"))
          .map(({ id, state }) => [id, (state as { readonly value: number }).value]),
      )
      for (const [count, status, percent] of [
        [17, "pass", 85],
        [18, "warn", 90],
      ] as const) {
        const allot = sql`
          update tunnel_port set identity_id = gen_random_uuid() where port = 61004 or port between 62001 and ${62_000 + count}`
        yield* withoutReferences(sql, allot)
        expect((yield* (yield* Health).report).components).toMatchObject([
          { name: "tunnel_ports", essential: false, status, detail: `${percent} % of the ports are in use` },
        ])
        yield* runAll
        expect(Object.fromEntries(yield* used)).toEqual({ svc_tunnel_ports: 20, svc_tunnel_ports_used: count })
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Health.layer))),
  )
})
