/** Runs two versions side by side under load, rolled forward and back as described in docs/upgrade.md. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { checkOut, lastRelease } from "../harness/Checkout.ts"
import { signUp } from "../harness/Client.ts"
import { type Deployment, deploy, type Process } from "../harness/Deployment.ts"
import { type Row } from "../harness/Report.ts"
import { manyIdentities } from "./Cluster.ts"
import { figures, outcome, timed } from "./Load.ts"
import { missing, register } from "./Writes.ts"

/** Writes and reads all Identities through each gateway in turn until it is stopped. */
const load = (gateways: ReadonlyArray<Process>, token: string, handles: ReadonlyArray<string>) => {
  const seen = outcome()
  const written: Array<string> = []
  let isRunning = true
  const callers = handles.map(async (handle, first) => {
    for (let at = first; isRunning; at++) {
      const { base } = gateways[at % gateways.length]!
      const id = await register(seen, base, token, handle)
      if (id !== undefined) written.push(id)
      await timed(seen, 200, base, "GET", `/api/identities/${handle}`, { token })
      // State that processes share without an actor.
      await timed(seen, 200, base, "GET", `/api/events?handle=${handle}&limit=1`, { token })
      await sleep(500)
    }
  })
  return {
    seen,
    written,
    end: async () => {
      isRunning = false
      await Promise.all(callers)
    },
  }
}

/** Replaces the processes by those of the other version, one at a time. */
const roll = async (from: ReadonlyArray<Process>, to: Deployment) => {
  const made: Array<Process> = []
  for (const one of from) {
    made.push(await to.start(["actors"]))
    one.signal("SIGTERM")
    await one.exited
  }
  return made
}

export const mixed = async (): Promise<Row> => {
  const revision = process.env["FAULTS_RELEASE"] ?? lastRelease()
  const checkout = checkOut(revision)
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-mixed-"))
  chmodSync(directory, 0o755)
  const [former, present] = [await deploy({ directory, checkout: checkout.folder }), await deploy({ directory })]
  let ended = async () => {}
  try {
    const old = [await former.start(["actors"]), await former.start(["actors"])]
    const gateways = [await former.start(["api"]), await present.start(["api"])]
    const { session } = await signUp(gateways[0]!.base)
    const handles = await manyIdentities(gateways[1]!.base, session, 12)
    const running = load(gateways, session, handles)
    ended = running.end
    await sleep(3000)
    const forward = await roll(old, present)
    await sleep(3000)
    await roll(forward, former)
    await sleep(3000)
    await running.end()
    const { seen, written } = running
    const { lost, twice } = await missing(gateways[1]!.base, session, handles, written)
    const wrong = [...seen.errors.keys()].filter((error) => error !== "503 unavailable")
    return {
      id: "mixed",
      ok: lost === 0 && twice === 0 && wrong.length === 0,
      what: `two actor processes of ${revision} replaced by two of this version and back, one at a time, under calls of 12 Identities through a gateway of each`,
      figures: { ...figures(seen), "writes lost": lost, "writes duplicated": twice },
      goals: [{ what: "responses that ask to retry", value: seen.errors.get("503 unavailable") ?? 0, atMost: 0 }],
    }
  } finally {
    await ended()
    await Promise.all([former.stop(), present.stop()])
    checkout.remove()
    rmSync(directory, { recursive: true, force: true })
  }
}
