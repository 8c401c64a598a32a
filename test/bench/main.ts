/**
 * `npm run bench [-- row ...] [--against <commit>]` measures cost and throughput. Each row is measured in turn with its
 * references. docs/performance.md explains the rows.
 */
import * as os from "node:os"
import { parseArgs } from "node:util"
import { perform } from "../harness/Report.ts"
import * as Asks from "./Asks.ts"
import { authorize } from "./Authorize.ts"
import { calls } from "./Calls.ts"
import * as Events from "./Events.ts"
import * as Identities from "./Identities.ts"
import { imap } from "./Imap.ts"
import { driver } from "./Load.ts"
import { measurable } from "./Processes.ts"
import * as Mail from "./Mail.ts"
import * as Process from "./Process.ts"
import { periodic } from "./Periodic.ts"
import { proof } from "./Proof.ts"
import { scale } from "./Scale.ts"
import * as Search from "./Search.ts"
import * as Sending from "./Sending.ts"
import { spread } from "./Spread.ts"
import * as Stage from "./Stage.ts"
import * as Tunnel from "./Tunnel.ts"
import * as Webhooks from "./Webhooks.ts"

const { values, positionals } = parseArgs({ options: { against: { type: "string" } }, allowPositionals: true })

/** A row that uses the shared stage. */
const staged =
  <A>(row: (stage: Stage.Stage) => Promise<A>) =>
  async () =>
    row(await Stage.stage(values.against))

/** A row that needs the machine for itself. */
const alone =
  <A>(row: () => Promise<A>) =>
  async () => {
    await Stage.stopStage()
    return row()
  }

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void Stage.stopStage().finally(() => process.exit(1)))
}
const cpu = measurable ? "CPU from /proc" : "no /proc here, so no CPU"
console.log(`HTTP driven by ${driver}; ${os.availableParallelism()} cores; ${cpu}`)
const ok = await perform(
  {
    ...Object.fromEntries(Object.entries(calls).map(([id, row]) => [id, staged(row)])),
    "mail-in": staged(Mail.mailIn),
    "mail-in-1": staged(Mail.mailInOne),
    // Creating a thousand Identities takes long, so the row only runs if it is named.
    ...(positionals.includes("mail-in-1000") ? { "mail-in-1000": staged(Mail.mailInCrowd) } : {}),
    "mail-wake": alone(Mail.mailWake),
    search: alone(Search.search),
    // Filling the Mailboxes takes long, so the row only runs if it is named.
    ...(positionals.includes("search-million") ? { "search-million": alone(Search.searchMillion) } : {}),
    imap: alone(imap),
    scale: alone(scale("scale", 10_000)),
    ...(positionals.includes("scale-million") ? { "scale-million": alone(scale("scale-million", 100_000)) } : {}),
    // Filling the store takes minutes, so the row only runs if it is named.
    ...(positionals.includes("periodic") ? { periodic: alone(periodic(100_000)) } : {}),
    send: alone(Sending.send(values.against)),
    deliveries: alone(Webhooks.webhook),
    ask: alone(Asks.ask),
    authorize: alone(authorize),
    spread: alone(spread),
    provision: alone(Identities.provision(values.against)),
    event: alone(Events.event),
    start: alone(Process.start),
    memory: alone(Process.memory),
    tunnel: alone(Tunnel.tunnel),
    proof: alone(proof),
  },
  positionals,
).finally(Stage.stopStage)
process.exit(ok ? 0 : 1)
