/**
 * The same calls where little is stored and where much is: whatever grows with what others stored shows as a ratio. And
 * what an actor costs that is woken: its memory, and the wait of who wakes it.
 */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { type Goal, percentile, round, type Row } from "../harness/Report.ts"
import { each, gather, handleOf } from "./Crowd.ts"
import type * as Load from "./Load.ts"
import { asked, type Played, subjectOf } from "./Stage.ts"
import { measurable, memoryOf } from "./Processes.ts"
import { drift, figuresOf, inTurn } from "./Turns.ts"

const few = 100
/** Actors that are woken, one after the other. */
const woken = 2_000

const get = (path: string): Load.Call => ({ method: "GET", path })

/** What is called, of the Identity that is asked for everywhere and that others stand beside. */
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
  const service = await deployment.start([], { SVC_IDENTITY_QUOTA: "1000000" })
  const { session: key } = await signUp(service.base)
  const { handle } = await makeIdentity(service.base, key)
  await gather(deployment, handle, count)
  return { deployment, service, key, handles: [handleOf(7)] } satisfies Played
}

/** The wait for the first answer of actors that are not in memory, and what each adds to it. */
const wake = async ({ service, key }: Played): Promise<{ p99: number; kB: number; wrong: number }> => {
  const pid = service.child.pid!
  const before = measurable ? memoryOf(pid).own : 0
  const waits: Array<number> = []
  let wrong = 0
  for (let n = 0; n < woken; n++) {
    const began = performance.now()
    const path = `/api/identities/${handleOf(few + n)}/card`
    const { status } = await call(service.base, "PATCH", path, { token: key, body: { description: "woken" } })
    waits.push(performance.now() - began)
    if (status !== 200) wrong++
  }
  const kB = measurable ? ((memoryOf(pid).own - before) * 1024) / woken : Number.NaN
  return { p99: round(percentile(waits, 0.99), 1), kB: round(kB, 1), wrong }
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
      const subject = (played: Played) => subjectOf(played, asked(played, callOf(played.handles[0]!)))
      const got = await inTurn({ little: subject(little), much: subject(much) }, { rounds: 4 })
      wrong += got.little.wrong + got.much.wrong
      // By CPU of both, which a busy machine disturbs less than their rates.
      const costs = ({ cpu, postgres, perSecond }: typeof got.much) =>
        cpu === undefined || postgres === undefined ? 1e6 / perSecond.median : cpu.least + postgres.least
      goals.push({ what: name, value: round(costs(got.much) / costs(got.little)), atMost: 1.2 })
      Object.assign(figures, figuresOf(name, got.much))
      unreliable.push(...drift({ cpu: { [`${name}, with few`]: got.little } }))
    }
    const { p99, kB, wrong: notWoken } = await wake(much)
    // Rows that the service could not make would be measured in place of those that it can.
    for (const { service } of [little, much]) {
      if (service.output().includes("does not fit the schema")) throw new Error("the crowd's Events are not whole")
    }
    return {
      id,
      ok: wrong === 0 && notWoken === 0,
      what: `what a call costs with ${many} Identities and ${many * each} messages, Events and deliveries stored, to the same with ${few}`,
      unreliable,
      goals: [
        ...goals,
        { what: "first touch of an actor, p99 ms", value: p99, atMost: 10 },
        ...(measurable ? [{ what: "kB of an actor in memory", value: kB, atMost: 20 }] : []),
      ],
      figures,
    }
  } finally {
    for (const end of ending.toReversed()) await end()
  }
}
