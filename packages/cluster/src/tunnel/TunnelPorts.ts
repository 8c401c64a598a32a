/** The pool of TCP ports that Tunnels are allotted from; the configured range is in the table once a process has started. */
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

/** A port that may be given out: free, of the range that is configured now, and rested. More conditions may follow. */
export const freePort = (
  sql: Sql,
  { first, last }: PortRange,
  at: Date | Statement.Fragment,
): Statement.Fragment => sql`
  select port from tunnel_port
  where identity_id is null and port between ${first} and ${last}
    and (freed_at is null or freed_at <= ${at}::timestamptz - ${Timing.portRest}::interval)`

/** Above this share of ports in use the operator should widen the range (traps.md 26). */
const nearlyFull = 0.9

const portsInAll = Metrics.gauge("svc_tunnel_ports", "TCP ports that tunnels are allotted from", [])
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
        yield* sql`insert into tunnel_port (port) select generate_series(${first}::int, ${last}::int) on conflict (port) do nothing`
      }),
    ),
    check(
      "tunnel_ports",
      false,
      Effect.gen(function* () {
        const share = (yield* used({ first, last })) / (last - first + 1)
        const finding: Finding = {
          status: share >= nearlyFull ? "warn" : "pass",
          detail: `${Math.round(share * 100)} % of the ports in use`,
        }
        return finding
      }),
    ),
  )
