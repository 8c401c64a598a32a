/** All planted bugs, by package. */
import { api } from "./api.ts"
import { cli } from "./cli.ts"
import { clusterMail } from "./cluster-mail.ts"
import { cluster } from "./cluster.ts"
import { domain } from "./domain.ts"
import { mailGateway } from "./mail-gateway.ts"
import type { Mutants } from "./Mutant.ts"
import { tunnelEdge } from "./tunnel-edge.ts"

export const mutants: Mutants = { ...api, ...cli, ...cluster, ...clusterMail, ...domain, ...mailGateway, ...tunnelEdge }
