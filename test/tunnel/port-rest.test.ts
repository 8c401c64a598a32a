/** Which TCP ports of the pool may be allotted. */
import { Writes } from "@svc/cluster/store/Database"
import { freePort } from "@svc/cluster/tunnel/TunnelPorts"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
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
      const free = yield* sql`${freePort(sql, { first: 61_001, last: 61_004 }, at)} order by port`
      expect(free).toEqual([{ port: 61_001 }, { port: 61_004 }])
    }),
  )
})
