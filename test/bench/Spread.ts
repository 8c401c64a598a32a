/** Benchmarks requests to actors that are spread over one, two and three processes. */
import { Effect, Exit, Layer, Scope } from "effect"
import { Identities } from "@svc/cluster/actor/Identities"
import { settingsOf } from "../faults/Store.ts"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { freePort } from "../harness/Ports.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { gateway, masterKey, width } from "./Asks.ts"
import { work } from "./Load.ts"
import { measurable, meter } from "./Processes.ts"

/** Number of actors that receive requests in turn: enough for each process to own some. */
const actors = 60
const most = 3
const [slices, sliceSeconds] = [4, 2]

interface Runner {
  readonly process: Process
  readonly ops: string
}

const count = async (ops: string, pattern: RegExp) => {
  const text = await (await fetch(`${ops}/metrics`)).text()
  return [...text.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0)
}
/** Returns the number of actor requests that a process has sent. A process that only responds sends none. */
const asksSent = (ops: string) => count(ops, /^svc_asks_total\{[^}]*\} (\S+)$/gm)
const owned = (ops: string) => count(ops, /^effect_cluster_shards(?:\{[^}]*\})? (\S+)$/gm)

export const spread = async (): Promise<Row> => {
  const deployment = await deploy()
  const scope = Scope.makeUnsafe()
  try {
    const runners: Array<Runner> = []
    const start = async () => {
      const port = await freePort()
      const env = { SVC_MASTER_KEY: masterKey, SVC_OPS_PORT: String(port) }
      runners.push({ process: await deployment.start(["actors"], env), ops: `http://127.0.0.1:${port}` })
      // Every process owns shards before the measurement starts.
      await until(
        "shards of each process",
        async () => {
          const shares = await Promise.all(runners.map(({ ops }) => owned(ops)))
          return Math.min(...shares) > (0.5 * shares.reduce((sum, one) => sum + one, 0)) / runners.length
        },
        60,
      )
    }
    await start()
    const api = await deployment.start(["api"], { SVC_MASTER_KEY: masterKey })
    const { session, org } = await signUp(api.base)
    const handles: Array<string> = []
    while (handles.length < actors) handles.push((await makeIdentity(api.base, session)).handle)
    const context = await Effect.runPromise(
      Layer.buildWithScope(Identities.layer.pipe(Layer.provide(gateway(settingsOf(deployment)))), scope),
    )
    const run = Effect.runPromiseWith(context)
    const { of } = await run(Effect.service(Identities))
    let next = 0
    const ask = () => run(of(handles[next++ % actors]!).Retry({ org_id: org.id as string }))
    const found: Array<{ perSecond: number; cpu: number; p50: number; asks: number; hops: number }> = []
    for (let size = 1; size <= most; size++) {
      if (size > 1) await start()
      // Loads each actor in its current process.
      for (const handle of handles) await run(of(handle).Retry({ org_id: org.id as string }))
      await work(width, ask)(1)
      const before = await Promise.all(runners.map(({ ops }) => asksSent(ops)))
      const rates: Array<number> = []
      const cpus: Array<number> = []
      const p50s: Array<number> = []
      let asks = 0
      for (let slice = 0; slice < slices; slice++) {
        const used = measurable ? meter(() => runners.map(({ process }) => process.child.pid!)) : undefined
        const { done, seconds, p50 } = await work(width, ask)(sliceSeconds)
        asks += done
        rates.push(done / seconds)
        cpus.push((used?.() ?? Number.NaN) / 1000 / done)
        p50s.push(p50)
      }
      const after = await Promise.all(runners.map(({ ops }) => asksSent(ops)))
      found.push({
        perSecond: percentile(rates, 0.5),
        cpu: Math.min(...cpus),
        p50: percentile(p50s, 0.5),
        asks,
        hops: after.reduce((sum, one) => sum + one, 0) - before.reduce((sum, one) => sum + one, 0),
      })
    }
    const [one] = found
    const [asks, hops] = [
      found.reduce((sum, each) => sum + each.asks, 0),
      found.reduce((sum, each) => sum + each.hops, 0),
    ]
    return {
      id: "spread",
      // Runners occasionally send other requests.
      ok: hops * 1000 < asks,
      what: `requests of one process to ${actors} actors on 1, 2 and 3 processes, ${width} concurrently`,
      goals: measurable
        ? found.slice(1).map(({ cpu }, at) => ({
            what: `CPU of a request with ${at + 2} processes to that with 1`,
            value: round(cpu / one!.cpu),
            atMost: 1.25,
          }))
        : [],
      figures: {
        ...Object.assign(
          {},
          ...found.map(({ perSecond, cpu, p50 }, at) => ({
            [`${at + 1}: asks/s`]: Math.round(perSecond),
            [`${at + 1}: p50 ms`]: round(p50),
            ...(measurable ? { [`${at + 1}: µs CPU an ask`]: round(cpu, 0) } : {}),
          })),
        ),
        "requests by runners": hops,
      },
    }
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await deployment.stop()
  }
}
