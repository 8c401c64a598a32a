/** How soon an Identity is ready, and how many there are in a second. */
import { setTimeout as sleep } from "node:timers/promises"
import { newHandle, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { work } from "./Load.ts"
import * as References from "./References.ts"
import { fetchRaw } from "./Requests.ts"
import * as Statements from "./Statements.ts"
import { drift, figuresOf, inTurn, shareOf } from "./Turns.ts"

export const provision = async (): Promise<Row> => {
  const deployment = await deploy({ postgres: Statements.settings })
  let reference: References.Inserts | undefined
  try {
    await Statements.prepare(deployment)
    // As many ports as Identities may be made.
    const service = await deployment.start([], { SVC_EDGE_TCP_PORTS: "20000-60000" })
    const orgs = await Promise.all(Array.from({ length: 8 }, () => signUp(service.base)))
    reference = await References.inserts(deployment, 32)
    const create = async (worker: number, pollMillis: number) => {
      const headers = {
        authorization: `Bearer ${orgs[worker % orgs.length]!.session}`,
        "content-type": "application/json",
      }
      const handle = newHandle("bench")
      const start = performance.now()
      const { status } = await fetchRaw(`${service.base}/api/identities`, {
        method: "POST",
        headers,
        body: JSON.stringify({ handle }),
      })
      if (status !== 202) throw new Error(`create answered ${status}`)
      while (true) {
        const { body } = await fetchRaw(`${service.base}/api/identities/${handle}`, { headers })
        if (body.includes('"status":"ready"')) return performance.now() - start
        if (body.includes('"status":"failed"')) throw new Error(`provisioning failed: ${body}`)
        await sleep(pollMillis)
      }
    }
    const alone: Array<number> = []
    for (let i = 0; i < 40; i++) alone.push(await create(i, 1))
    // Looked for rarely, so that the looking is not what is measured.
    const drive = work(32, (worker) => create(worker, 25))
    const got = await inTurn(
      { inserts: reference, ours: { drive, pid: service.child.pid!, postmaster: deployment.postgres() } },
      { rounds: 4, seconds: 2 },
    )
    return {
      id: "provision",
      ok: true,
      what: "POST to ready: one at a time; 32 in flight, beside one-row INSERTs",
      unreliable: drift({ rate: { "the INSERTs": got.inserts } }),
      goals: [
        { what: "p50 ms", value: round(percentile(alone, 0.5)), atMost: 60 },
        { what: "INSERTs per Identity", value: round(1 / shareOf(got.ours, got.inserts, 6), 1), atMost: 25 },
      ],
      figures: { ...figuresOf("ours", got.ours), ...figuresOf("INSERTs", got.inserts) },
      details: await Statements.dearest(deployment, { drive }),
    }
  } finally {
    await reference?.close()
    await deployment.stop()
  }
}
