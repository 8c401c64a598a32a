/** The Tunnel's TCP port in an Identity's sagas. */
import { Effect } from "effect"
import type { Step } from "../saga/Step.ts"
import { freePort, type PortRange } from "./TunnelPorts.ts"

export const provision =
  (ports: PortRange): Step =>
  ({ sql, identity, at, gate }) =>
    Effect.succeed({
      rows: sql`
        kept as (select port from tunnel_port where identity_id = ${identity.id}::uuid),
        free as (
          ${freePort(sql, ports, at)}
            and exists (select from ${gate}) and not exists (select from kept)
          order by freed_at nulls first, port limit 1 for update skip locked
        ),
        allotted as (
          update tunnel_port t set identity_id = ${identity.id}::uuid from free where t.port = free.port returning t.port
        )`,
      unless: {
        made: sql`exists (select from kept) or exists (select from allotted)`,
        otherwise: "tunnel_ports_exhausted: no TCP port is free",
      },
    })

export const teardown: Step = ({ sql, identity, at }) =>
  Effect.succeed({
    rows: sql`removed as (
      update tunnel_port set identity_id = null, freed_at = ${at}
      where identity_id = ${identity.id} and exists (select from fence))`,
  })
