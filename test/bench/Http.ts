/** The HTTP rows: reading an Identity, asking an actor, provisioning, and the start. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { NodeSocket } from "@effect/platform-node"
import * as Cluster from "@svc/cluster/Cluster"
import { Health } from "@svc/cluster/health/Health"
import { Identities } from "@svc/cluster/identity/Identities"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Exit, Layer, Scope } from "effect"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { settingsOf } from "../faults/Store.ts"
import { deploy, type Deployment, isHealthy, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { Echo } from "./EchoServer.ts"
import { fetchRaw, rate } from "./Throughput.ts"

/** A process of its own that answers every request with the same bytes. */
const bareServer = async (body: string) => {
  const child = spawn(
    process.execPath,
    [
      "-e",
      `
    const body = ${JSON.stringify(body)}
    require("node:http").createServer((q, r) => { r.setHeader("content-type", "application/json"); r.end(body) })
      .listen(0, "127.0.0.1", function () { console.log(this.address().port) })`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const [port] = (await once(child.stdout, "data")) as [Buffer]
  return { url: `http://127.0.0.1:${port.toString().trim()}/`, stop: () => child.kill() }
}

const storeOf = async (deployment: Deployment) => {
  const scope = Scope.makeUnsafe()
  const context = await Effect.runPromise(
    Layer.buildWithScope(Layer.fresh(Stores.layer(settingsOf(deployment))), scope),
  )
  return { context, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** One-row INSERTs through the same client, so many at a time. */
export const inserts = async (deployment: Deployment, width: number, seconds = 3) => {
  const { context, close } = await storeOf(deployment)
  const run = Effect.runPromiseWith(context)
  const sql = await run(Effect.service(Stores.Writes))
  await run(
    sql`create table if not exists bench_row (id bigint generated always as identity primary key, text text not null)`,
  )
  const measured = await rate(width, seconds, () =>
    run(sql`insert into bench_row (text) values ('a row as short as they come')`),
  )
  await close()
  return measured
}

export const api = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const url = `${service.base.replace("localhost", "127.0.0.1")}/api/identities/${handle}`
    const headers = { authorization: `Bearer ${session}` }
    const bare = await bareServer((await fetchRaw(url, { headers })).body)
    const reference = await rate(32, 4, () => fetchRaw(bare.url, { headers }))
    const ours = await rate(32, 4, () => fetchRaw(url, { headers }))
    bare.stop()
    return {
      id: "api",
      ok: true,
      what: "authenticated GET /api/identities/{handle}, 32 connections, against bare node:http with the same bytes",
      figures: {
        ratio: round(ours.perSecond / reference.perSecond),
        "ours/s": ours.perSecond,
        "reference/s": reference.perSecond,
        "p99 ratio": round(ours.p99 / reference.p99, 1),
        "p99 ms": ours.p99,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Round trips of Effect's RPC to a process that only echoes, so many at a time. */
const echoes = async (width: number) => {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, "EchoServer.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const [port] = (await once(child.stdout, "data")) as [Buffer]
  const measured = await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* RpcClient.make(Echo, { disableTracing: true })
        const run = Effect.runPromiseWith(yield* Effect.context<never>())
        return yield* Effect.promise(() =>
          rate(width, 3, () => run(client.Echo({ org_id: "00000000-0000-7000-8000-000000000000" }))),
        )
      }).pipe(
        Effect.provide(
          RpcClient.layerProtocolSocket().pipe(
            Layer.provide(NodeSocket.layerNet({ host: "127.0.0.1", port: Number(port.toString()) })),
            Layer.provide(RpcSerialization.layerSchemaBinary()),
          ),
        ),
      ),
    ),
  )
  child.kill()
  return measured
}

/** By the key that the service made for itself. */
const sealingOf = ({ directory }: Deployment) =>
  Layer.unwrap(
    Effect.map(
      Effect.orDie(parseMasterKeys(readFileSync(path.join(directory, "master.key"), "utf8").trim())),
      Sealing.layer,
    ),
  )

/** Asks across two processes: this one asks, the service's actors answer. */
export const ask = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const { session, org } = await signUp(service.base)
    const names = await Promise.all(
      Array.from({ length: 50 }, async () => (await makeIdentity(service.base, session)).handle),
    )
    const scope = Scope.makeUnsafe()
    const layer = Identities.layer.pipe(
      Layer.provide(Cluster.gateway(undefined)),
      Layer.provide(sealingOf(deployment)),
      Layer.provideMerge(Layer.fresh(Stores.layer(settingsOf(deployment)))),
      Layer.provide(Health.layer),
    )
    const context = await Effect.runPromise(Layer.buildWithScope(layer, scope))
    const run = Effect.runPromiseWith(context)
    const actors = await run(Effect.service(Identities))
    const one = (worker: number) => run(actors.of(names[worker % names.length]!).Retry({ org_id: org.id }))
    await until("the gateway's view of the cluster", () =>
      one(0).then(
        () => true,
        () => false,
      ),
    )
    const single = await rate(1, 2, one)
    const many = await rate(64, 3, one)
    const reference = await echoes(64)
    await Effect.runPromise(Scope.close(scope, Exit.void))
    return {
      id: "ask",
      ok: true,
      what: "asks/s to actors of another process, 64 at a time, against an Effect RPC echo over the same kind of socket",
      figures: {
        ratio: round(many.perSecond / reference.perSecond),
        "asks/s": many.perSecond,
        "reference/s": reference.perSecond,
        "alone p50 ms": single.p50,
      },
    }
  } finally {
    await deployment.stop()
  }
}

export const provision = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    // As many ports as Identities may be made.
    const service = await deployment.start([], { SVC_EDGE_TCP_PORTS: "20000-60000" })
    const orgs = await Promise.all(Array.from({ length: 8 }, () => signUp(service.base)))
    const reference = await inserts(deployment, 32)
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
    for (let i = 0; i < 100; i++) alone.push(await create(i, 1))
    // Looked for rarely, so that the looking is not what is measured.
    const many = await rate(32, 4, (worker) => create(worker, 25))
    return {
      id: "provision",
      ok: true,
      what: "POST to ready, one at a time; identities/s with 32 in flight against one-row INSERTs",
      figures: {
        "p50 ms": round(percentile(alone, 0.5)),
        "inserts per identity": round(reference.perSecond / many.perSecond, 1),
        "identities/s": many.perSecond,
        "inserts/s": reference.perSecond,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** From the launch of the process to a healthy answer, on an empty directory and on the one it left. */
export const start = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const launch = async () => {
      const begin = performance.now()
      const service = await deployment.start()
      await until("health", () => isHealthy(service.base))
      const took = performance.now() - begin
      service.signal("SIGTERM")
      await service.gone
      return Math.round(took)
    }
    const first = await launch()
    const later = [await launch(), await launch(), await launch()]
    return {
      id: "start",
      ok: true,
      what: "start to healthy: the first time (database made), later",
      figures: { "first ms": first, "later ms (median of 3)": percentile(later, 0.5) },
    }
  } finally {
    await deployment.stop()
  }
}
