/** The Tunnel of an Identity. */
import { Effect } from "effect"
import { type Capability, cascades, kept, workState } from "../Capability.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { TunnelQueries } from "./TunnelQueries.ts"
import * as Tunnels from "./Tunnels.ts"

export const tunnel = {
  name: "tunnel",
  handlers: ({ handling, limits }) => Effect.map(Sealing, (sealing) => Tunnels.handlers(handling, sealing, limits)),
  work: { identity: [], org: [] },
  queries: [TunnelQueries.layer],
  exports: [],
  tables: {
    tunnel_link: kept("a lease of 45 seconds"),
    tunnel_port: kept("a port that is free again"),
    tunnel_setting: cascades({ not: "settings, in GET /api/identities/{handle}/tunnel" }),
    tunnel_transfer: cascades(workState),
    tunnel_usage: cascades({ not: "counts, in GET /api/identities/{handle}/tunnel" }),
  },
} satisfies Capability
