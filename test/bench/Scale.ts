/**
 * Compares the same requests with little and with much stored data, so that costs which grow with other data show as a
 * ratio. Also measures the memory and the latency of loading an actor.
 */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { type Goal, percentile, round, type Row } from "../harness/Report.ts"
import { each, copyIdentities, handleOf } from "./Crowd.ts"
import * as Heap from "./Heap.ts"
import type * as Load from "./Load.ts"
import { callWithKey, type BenchService, subjectOf } from "./Stage.ts"
import { drift, figuresOf, inTurn } from "./Turns.ts"

const few = 100
const get = (path: string): Load.Call => ({ method: "GET", path })

/** The measured calls for one Identity. */
const calls: Readonly<Record<string, (handle: string) => Load.Call>> = {
  identity: (handle) => get(`/api/identities/${handle}`),
  "the list of Identities": () => get("/api/identities?limit=20"),
  messages: (handle) => get(`/api/identities/${handle}/messages?limit=20`),
  "messages of a tag": (handle) => get(`/api/identities/${handle}/messages?tag=seldom`),
  "a search": (handle) => get(`/api/identities/${handle}/messages?query=letter`),
  threads: (handle) => get(`/api/identities/${handle}/threads?limit=20`),
  "the Org's Events": () => get("/api/events?limit=20"),
  "Events of an Identity": (handle) => get(`/api/events?handle=${handle}&limit=20`),
  "Events of a seldom type": () => get("/api/events?type=tunnel.connected&limit=20"),
  "Vault list": () => get("/api/vault/secrets?limit=20"),
  "a Vault write": () => ({
    method: "PUT",
    path: "/api/vault/secrets/bench.{worker}",
    body: JSON.stringify({ value: "number {n}" }),
  }),
  "a card": (handle) => ({
    method: "PATCH",
    path: `/api/identities/${handle}/card`,
    body: JSON.stringify({ description: "number {n} of {worker}" }),
  }),
}

const play = async (count: number) => {
  const deployment = await deploy()
  const service = await deployment.start([], { SVC_IDENTITY_QUOTA: "1000000", ...observed })
  const { session: key } = await signUp(service.base)
  const { handle } = await makeIdentity(service.base, key)
  await copyIdentities(deployment, handle, count)
  return { deployment, service, key, handles: [handleOf(7)] } satisfies BenchService
}

/**
 * Numbers of actors that are loaded one by one, in a crowd, and in total; memory is measured between the first and the
 * last.
 */
const woken = { alone: 500, crowd: 1_000, last: 3_000 }
/** Number of concurrent requests in a crowd. */
const atOnce = 64

/** Enables the inspector for the heap size and the metrics for the number of actors. */
const observed = { NODE_OPTIONS: "--inspect=127.0.0.1:0", SVC_OPS_PORT: "0" }

/** Returns the latencies of calls to consecutive actors in `range`, with a given concurrency. */
const patched = async ({ service, key }: BenchService, [first, last]: readonly [number, number], width: number) => {
  const waits: Array<number> = []
  let wrong = 0
  let next = first
  const patch = async () => {
    while (next < last) {
      const path = `/api/identities/${handleOf(few + next++)}/card`
      const began = performance.now()
      const { status } = await call(service.base, "PATCH", path, { token: key, body: { description: "woken" } })
      waits.push(performance.now() - began)
      if (status !== 200) wrong++
    }
  }
  await Promise.all(Array.from({ length: width }, patch))
  return { p50: round(percentile(waits, 0.5), 1), p99: round(percentile(waits, 0.99), 1), wrong }
}

/**
 * Measures the cost of loading an actor: latency one by one and in a crowd, compared with actors in memory, and memory
 * per actor. The first thousand actors are excluded, because the process loads and compiles code for them, as is
 * garbage that was not collected yet.
 */
const wake = async (played: BenchService) => {
  const { service } = played
  const memory = await Heap.of(service)
  try {
    const alone = await patched(played, [0, woken.alone], 1)
    const again = await patched(played, [woken.alone / 2, woken.alone], 1)
    const before = await memory.look()
    const crowd = await patched(played, [woken.alone, woken.crowd], atOnce)
    const crowdAgain = await patched(played, [woken.alone, woken.crowd], atOnce)
    const rest = await patched(played, [woken.crowd, woken.last], 8)
    const after = await memory.look()
    const actors = after.actors - before.actors
    return {
      alone,
      kB: round((after.bytes - before.bytes) / 1024 / actors, 1),
      wrong: [alone, again, crowd, crowdAgain, rest].reduce((sum, one) => sum + one.wrong, 0),
      left: woken.last - woken.alone - actors,
      figures: {
        "not in memory, p50 ms": alone.p50,
        "not in memory, p99 ms": alone.p99,
        "in memory, p50 ms": again.p50,
        "in memory, p99 ms": again.p99,
        [`first touch of ${atOnce} at once, p50 ms`]: crowd.p50,
        [`first touch of ${atOnce} at once, p99 ms`]: crowd.p99,
        [`second touch of ${atOnce} at once, p50 ms`]: crowdAgain.p50,
        [`second touch of ${atOnce} at once, p99 ms`]: crowdAgain.p99,
        "actors counted": actors,
      },
    }
  } finally {
    memory.close()
  }
}

export const scale = (id: string, many: number) => async (): Promise<Row> => {
  const ending: Array<() => Promise<void>> = []
  const started = async (count: number) => {
    const played = await play(count)
    ending.push(played.deployment.stop)
    return played
  }
  try {
    const [little, much] = [await started(few), await started(many)]
    const goals: Array<Goal> = []
    const figures: Record<string, number> = {}
    const unreliable: Array<string> = []
    let wrong = 0
    for (const [name, callOf] of Object.entries(calls)) {
      const subject = (played: BenchService) => subjectOf(played, callWithKey(played, callOf(played.handles[0]!)))
      const got = await inTurn({ little: subject(little), much: subject(much) }, { rounds: 4 })
      wrong += got.little.wrong + got.much.wrong
      // CPU time of both processes, which a busy machine disturbs less than throughput.
      const costs = ({ cpu, postgres, perSecond }: typeof got.much) =>
        cpu === undefined || postgres === undefined ? 1e6 / perSecond.median : cpu.least + postgres.least
      goals.push({ what: name, value: round(costs(got.much) / costs(got.little)), atMost: 1.2 })
      Object.assign(figures, figuresOf(name, got.much))
      unreliable.push(...drift({ cpu: { [`${name}, with few`]: got.little } }))
    }
    const { alone, kB, left, wrong: notWoken, figures: touches } = await wake(much)
    if (left !== 0) unreliable.push(`${left} actors left memory before they were counted`)
    // Fails if the crowd's rows differ from what the service writes, since the measurement would be meaningless.
    for (const { service } of [little, much]) {
      if (service.output().includes("does not match the schema")) throw new Error("the crowd's Events are not whole")
    }
    return {
      id,
      ok: wrong === 0 && notWoken === 0,
      what: `cost of calls with ${many} Identities and ${many * each} stored messages, Events and deliveries, compared with ${few}`,
      unreliable,
      goals: [
        ...goals,
        { what: "loading an actor, p99 ms", value: alone.p99, atMost: 10 },
        { what: "kB of an actor in memory", value: kB, atMost: 20 },
      ],
      figures: { ...figures, ...touches },
    }
  } finally {
    for (const end of ending.toReversed()) await end()
  }
}
