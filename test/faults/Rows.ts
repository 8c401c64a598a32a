/** Every row of `npm run faults` by name. */
import type { Row } from "../harness/Report.ts"
import { clockSkew } from "./ClockSkew.ts"
import { clockStep } from "./ClockStep.ts"
import * as Cluster from "./Cluster.ts"
import * as Connectors from "./Connectors.ts"
import { cutStore } from "./cut-store/CutStore.ts"
import { hostileBodies } from "./HostileBodies.ts"
import { hostileImap } from "./HostileImap.ts"
import { hostileMail } from "./HostileMail.ts"
import { hostilePipeline } from "./HostilePipeline.ts"
import { imapMany } from "./Imap.ts"
import { killSend } from "./KillSend.ts"
import * as Mail from "./Mail.ts"
import * as Sending from "./Sending.ts"
import { mixed } from "./Mixed.ts"
import { model } from "./Model.ts"
import { proofRotation } from "./ProofRotation.ts"
import { restore } from "./Restore.ts"
import { rolling } from "./Rolling.ts"
import { silentStore } from "./SilentStore.ts"
import { soak } from "./Soak.ts"
import * as StoreOutage from "./StoreOutage.ts"
import { stopProof } from "./StopProof.ts"
import { stopStorm } from "./StopStorm.ts"
import { storeFull } from "./StoreFull.ts"
import { twoPrograms } from "./TwoPrograms.ts"
import * as Surface from "./Surface.ts"
import * as Tunnel from "./Tunnel.ts"
import * as TunnelPeers from "./TunnelPeers.ts"
import * as Webhooks from "./Webhooks.ts"

export const rows: Readonly<Record<string, () => Promise<Row>>> = {
  "kill-create": Cluster.killCreate,
  "kill-mail": Mail.killMail,
  failover: Cluster.failover,
  drain: Cluster.drain,
  freeze: Cluster.freeze,
  cut: Cluster.cut,
  "cut-store": cutStore,
  rolling,
  mixed,
  restore,
  model,
  soak,
  "clock-skew": clockSkew,
  "clock-step": clockStep,
  "handle-race": Cluster.handleRace,
  "store-down": StoreOutage.storeDown,
  "store-killed": StoreOutage.storeKilled,
  "store-full": storeFull,
  "silent-store": silentStore,
  "hostile-smtp": Mail.hostileSmtp,
  "hostile-mail": hostileMail,
  "imap-many": imapMany,
  "hostile-imap": hostileImap,
  "two-programs": twoPrograms,
  "kill-send": killSend,
  "stop-storm": stopStorm,
  "stop-proof": stopProof,
  "proof-rotation": proofRotation,
  "hostile-bounce": Sending.hostileBounce,
  postfix: Sending.postfix,
  "webhook-storm": Webhooks.webhookStorm,
  "device-race": Surface.deviceRace,
  credential: Surface.credential,
  canary: Surface.canary,
  "hostile-http": Surface.hostileHttp,
  "hostile-bodies": hostileBodies,
  "hostile-pipeline": hostilePipeline,
  "kill-delete": Surface.killDelete,
  limits: Surface.limits,
  "kill-edge": Tunnel.killEdge,
  "drain-edge": Tunnel.drainEdge,
  "freeze-edge": Tunnel.freezeEdge,
  "stalled-readers": TunnelPeers.stalledReaders,
  "refresh-race": Connectors.refreshRace,
  "poll-kill": Connectors.pollKill,
  "hostile-instance": Connectors.hostileInstance,
  "hostile-tunnel": TunnelPeers.hostileTunnel,
}
