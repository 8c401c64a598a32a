/** The pool of TCP ports for Tunnels. A process adds the configured range to the table when it starts. */
import { Effect, Layer } from "effect"
import { check, type Finding } from "../health/Health.ts"
import { collect } from "../observe/Collectors.ts"
import * as Metrics from "../observe/Metrics.ts"
import type { Statement } from "effect/sql"
import { Reads, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

export interface PortRange {
  readonly first: number
  readonly last: number
}

/**
 * Selects ports that may be allotted: free, in the configured range, and unused for a rest period. Callers may append
 * conditions.
 */
export const freePort = (
  sql: Sql,
  { first, last }: PortRange,
  at: Date | Statement.Fragment,
): Statement.Fragment => sql`
  select port from tunnel_port
  where identity_id is null and port between ${first} and ${last}
    and (freed_at is null or freed_at <= ${at}::timestamptz - ${Timing.portRest}::interval)`

/** Share of used ports above which health warns, so that the operator extends the range. */
const nearlyFull = 0.9

const portsInAll = Metrics.gauge("svc_tunnel_ports", "TCP ports in the configured range for Tunnels", [])
const portsInUse = Metrics.gauge("svc_tunnel_ports_used", "TCP ports that are allotted", [])

const used = Effect.fnUntraced(function* ({ first, last }: PortRange) {
  const sql = yield* Reads
  const [row] = yield* sql<{ used: number }>`
    select count(*)::int as used from tunnel_port where identity_id is not null and port between ${first} and ${last}`
  return row!.used
})

export const layer = ({ first, last }: PortRange) =>
  Layer.mergeAll(
    collect(
      Effect.map(used({ first, last }), (count) => {
        portsInAll.set([], last - first + 1)
        portsInUse.set([], count)
      }),
    ),
    Layer.effectDiscard(
      Effect.gen(function* () {
        const sql = yield* Writes
        // Existing ports are left out, since each of them would cost a look-up.
        yield* sql`
          insert into tunnel_port (port) select port from generate_series(${first}::int, ${last}::int) port
          where port not in (select port from tunnel_port) on conflict (port) do nothing`
      }),
    ),
    check(
      "tunnel_ports",
      false,
      Effect.gen(function* () {
        const share = (yield* used({ first, last })) / (last - first + 1)
        const finding: Finding = {
          status: share >= nearlyFull ? "warn" : "pass",
          detail: `${Math.round(share * 100)} % of the ports are in use`,
        }
        return finding
      }),
    ),
  )
