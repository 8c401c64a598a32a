/** All planted bugs, by package. */
import { api } from "./api.ts"
import { areas } from "./areas.ts"
import { classes } from "./classes.ts"
import { cli } from "./cli.ts"
import { clusterAudit } from "./cluster-audit.ts"
import { clusterMail } from "./cluster-mail.ts"
import { cluster } from "./cluster.ts"
import { console } from "./console.ts"
import { consoleModules } from "./console-modules.ts"
import { domain } from "./domain.ts"
import { drawnByLot } from "./drawn-by-lot.ts"
import { edges } from "./edges.ts"
import { embedded } from "./embedded.ts"
import { leasesAndLocks } from "./leases-and-locks.ts"
import { mailAgents } from "./mail-agents.ts"
import { mailGatewayImap } from "./mail-gateway-imap.ts"
import { mailGatewaySending } from "./mail-gateway-sending.ts"
import { mailGatewaySmtp } from "./mail-gateway-smtp.ts"
import { mailRules } from "./mail-rules.ts"
import { mailTags } from "./mail-tags.ts"
import { creators } from "./creators.ts"
import type { Mutants } from "./Mutant.ts"
import { mcpClients } from "./mcp-clients.ts"
import { proof } from "./proof.ts"
import { recorded } from "./recorded.ts"
import { refusals } from "./refusals.ts"
import { sdks } from "./sdks.ts"
import { secondSteps } from "./second-steps.ts"
import { staleHolders } from "./stale-holders.ts"
import { surfaces } from "./surfaces.ts"
import { consoleAndEdge } from "./console-and-edge.ts"
import { tenancyAndTime } from "./tenancy-and-time.ts"
import { tunnelEdge } from "./tunnel-edge.ts"
import { usage } from "./usage.ts"

export const mutants: Mutants = {
  ...api,
  ...areas,
  ...classes,
  ...cli,
  ...cluster,
  ...clusterAudit,
  ...clusterMail,
  ...console,
  ...consoleModules,
  ...domain,
  ...drawnByLot,
  ...edges,
  ...embedded,
  ...leasesAndLocks,
  ...mailAgents,
  ...mailGatewayImap,
  ...mailGatewaySending,
  ...mailGatewaySmtp,
  ...mailRules,
  ...mailTags,
  ...mcpClients,
  ...proof,
  ...creators,
  ...recorded,
  ...refusals,
  ...sdks,
  ...secondSteps,
  ...staleHolders,
  ...surfaces,
  ...consoleAndEdge,
  ...tenancyAndTime,
  ...tunnelEdge,
  ...usage,
}
