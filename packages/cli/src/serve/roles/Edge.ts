/** Role `edge`: the public side of tunnels. */
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Identities } from "@svc/cluster/actor/Identities"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { AgentKeys } from "@svc/cluster/proof/AgentKeys"
import { TunnelDocuments } from "@svc/cluster/proof/TunnelDocuments"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import * as Edge from "@svc/tunnel-edge/edge/Edge"
import { Layer, Option } from "effect"
import type { Settings } from "../Settings.ts"

/**
 * Seconds to wait for connections at shutdown. Tunnel connections are long-lived, so a process with only this role
 * waits longer.
 */
const drainSeconds = { alone: 180, beside: 8 }

export const layer = (settings: Settings, alone: boolean) =>
  Edge.layer({
    host: settings.host,
    port: settings.edgePort,
    sharesPort: settings.edgeSharesPort,
    address: Option.getOrUndefined(settings.edgeAddress),
    balancers: settings.proxyProtocolFrom,
    tls: Option.getOrUndefined(settings.edgeTls),
    connections: { perClient: settings.edgeClientConnections, inAll: settings.edgeConnections },
    drainMillis: 1000 * Option.getOrElse(settings.drainSeconds, () => drainSeconds[alone ? "alone" : "beside"]),
  }).pipe(
    Layer.provide([
      CredentialLookup.layer,
      TunnelLinks.layer,
      TunnelQueries.layer,
      TunnelUsage.layer,
      TunnelDocuments.layer,
      AgentKeys.layer,
      PublicLimits.layer(settings.limits),
      Identities.layer,
      Orgs.layer,
    ]),
    Layer.provide(RefusedCredentials.layer),
    Layer.provide(Audit.layer({ addresses: settings.auditAddresses })),
  )
