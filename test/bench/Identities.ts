/** The Identity rows: the time until an Identity is ready, and the throughput. */
import { setTimeout as sleep } from "node:timers/promises"
import { newHandle, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { work } from "./Load.ts"
import * as References from "./References.ts"
import { fetchRaw } from "./Requests.ts"
import { checkout } from "./Stage.ts"
import * as Statements from "./Statements.ts"
import { costOf, drift, figuresOf, inTurn, shareOf, type Subject } from "./Turns.ts"

/** Starts a service and returns functions that create Identities in it. */
const provider = async (ending: Array<() => unknown>, tree?: string) => {
  const deployment = await deploy({ postgres: Statements.settings, ...(tree === undefined ? {} : { checkout: tree }) })
  ending.push(deployment.stop)
  await Statements.prepare(deployment)
  // One port per Identity that the row may create.
  const service = await deployment.start([], { SVC_EDGE_TCP_PORTS: "20000-60000" })
  const orgs = await Promise.all(Array.from({ length: 8 }, () => signUp(service.base)))
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
  // Polled rarely, so that polling does not distort the measurement.
  const drive = work(32, (worker) => create(worker, 25))
  const subject: Subject = { drive, pid: service.child.pid!, postmaster: deployment.postgres() }
  return { deployment, subject, p50: round(percentile(alone, 0.5)) }
}

export const provision = (against: string | undefined) => async (): Promise<Row> => {
  const ending: Array<() => unknown> = []
  try {
    const ours = await provider(ending)
    const inserts = await References.inserts(ours.deployment, 32)
    ending.push(inserts.close)
    let before: Awaited<ReturnType<typeof provider>> | undefined
    if (against !== undefined) {
      const { tree, remove } = checkout(against)
      ending.unshift(remove)
      before = await provider(ending, tree)
    }
    const subjects = { inserts, ours: ours.subject }
    const timing = { rounds: 4, seconds: 2 }
    const got =
      before === undefined
        ? { ...(await inTurn(subjects, timing)), earlier: undefined }
        : await inTurn({ ...subjects, earlier: before.subject }, timing)
    return {
      id: "provision",
      ok: true,
      what: "creation of an Identity until it is ready: one at a time, and 32 concurrently, compared with one-row INSERTs",
      unreliable: drift({ rate: { "the INSERTs": got.inserts } }),
      goals: [
        { what: "p50 ms", value: ours.p50, atMost: 60 },
        { what: "INSERTs per Identity", value: round(1 / shareOf(got.ours, got.inserts, 6), 1), atMost: 25 },
      ],
      figures: {
        ...figuresOf("ours", got.ours),
        ...figuresOf("INSERTs", got.inserts),
        ...(got.earlier === undefined
          ? {}
          : {
              ...figuresOf("earlier", got.earlier),
              "earlier p50 ms": before!.p50,
              "earlier INSERTs per Identity": round(1 / shareOf(got.earlier, got.inserts, 6), 1),
              ...Object.fromEntries(
                costOf("CPU to earlier", got.ours, got.earlier, 1).map(({ what, value }) => [what, value]),
              ),
            }),
      },
      details: await Statements.mostExpensive(ours.deployment, { drive: ours.subject.drive }),
    }
  } finally {
    for (const end of ending.toReversed()) await end()
  }
}
