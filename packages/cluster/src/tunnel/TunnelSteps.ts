/** The Tunnel's TCP port in an Identity's sagas. */
import { Effect } from "effect"
import { partOf, type Shared, type Step } from "../saga/Step.ts"
import { freePort, type PortRange } from "./TunnelPorts.ts"

/** Skips locked ports, so that concurrent provisionings do not wait for each other. */
const port = (ports: PortRange): Shared<null> => ({
  rows: (sql, gate) => sql`
    kept as (select g.n from ${gate} g join tunnel_port p on p.identity_id = g.identity_id),
    wanting as materialized (
      select g.n, g.identity_id, g.at, row_number() over (order by g.n) as place from ${gate} g
      where not exists (select from kept where kept.n = g.n)
    ),
    free as materialized (
      ${freePort(sql, ports, sql`(select min(at) from wanting)`)} and exists (select from wanting)
      order by freed_at nulls first, port limit (select count(*) from wanting) for update skip locked
    ),
    allotted as (
      update tunnel_port t set identity_id = w.identity_id
      from (select port, row_number() over () as place from free) f join wanting w on w.place = f.place
      where t.port = f.port
      returning w.n
    ),
    ported as (select n from kept union all select n from allotted)`,
  unless: { made: "ported", otherwise: "tunnel_ports_exhausted: no TCP port is free" },
})

export const provision = (ports: PortRange): Step => {
  const shared = port(ports)
  return (subject) => Effect.succeed(partOf(subject, shared, null))
}

export const teardown: Step = ({ sql, identity, at }) =>
  Effect.succeed({
    rows: sql`removed as (
      update tunnel_port set identity_id = null, freed_at = ${at}
      where identity_id = ${identity.id} and exists (select from fence))`,
  })
