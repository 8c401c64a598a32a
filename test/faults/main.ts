/** `npm run faults [row ...]`: what is done to the service, what was acknowledged, what was lost. */
import { run } from "../rig/Report.ts"
import * as Cluster from "./Cluster.ts"

await run({
  "kill-create": Cluster.killCreate,
  failover: Cluster.failover,
  drain: Cluster.drain,
  freeze: Cluster.freeze,
  cut: Cluster.cut,
  "handle-race": Cluster.handleRace,
  "store-down": Cluster.storeDown,
  "store-killed": Cluster.storeKilled,
})
