/** Process faults under load: killed, suspended or disconnected from the store. */
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { figures, outcome, type Outcome, timed, times } from "./Load.ts"
import { inStore } from "./Store.ts"
import { missing, register, writing } from "./Writes.ts"

/** Starts one gateway and two actor processes, one of which will be disturbed. */
const threeRoles = async (deployment: Deployment) => {
  const actors = [await deployment.start(["actors"]), await deployment.start(["actors"])]
  const gateway = await deployment.start(["api", "mail"])
  return { gateway, actors }
}

/** Nothing is disturbed yet, so a request that timed out on a busy machine is repeated. */
const prepared = (base: string, token: string, tries = 5): Promise<string> =>
  makeIdentity(base, token).then(
    ({ handle }) => handle,
    (error: unknown) =>
      tries > 1 && String(error).includes(" 503") ? prepared(base, token, tries - 1) : Promise.reject(error),
  )

export const manyIdentities = async (base: string, token: string, count: number) => {
  const made: Array<string> = []
  for (let at = 0; at < count; at += 20) {
    made.push(...(await Promise.all(Array.from({ length: Math.min(20, count - at) }, () => prepared(base, token)))))
  }
  return made
}

interface Disturbance {
  readonly id: string
  readonly what: string
  /** Disturbs the process and returns additional figures; a figure that is false fails the row. */
  readonly disturb: (
    victim: Process,
    deployment: Deployment,
    seen: Outcome,
  ) => Promise<Row["figures"] | undefined | void>
  readonly longestMillis: number
  /** Whether callers may receive `unavailable`. */
  readonly unavailable: boolean
  /** Number of disturbances. */
  readonly times?: number
  /** Goals for the waits of callers in milliseconds, which a busy machine may miss. Each caller pauses for `pauseMillis` between its requests. */
  readonly waits?: { readonly pauseMillis: number; readonly longest: number; readonly p99: number }
}

const disturbed = async ({ id, what, disturb, longestMillis, unavailable, times = 1, waits }: Disturbance) => {
  const deployment = await deploy()
  let end = async () => {}
  try {
    const { gateway, actors } = await threeRoles(deployment)
    const { session } = await signUp(gateway.base)
    const handles = await manyIdentities(gateway.base, session, 100)
    const seen = outcome()
    const running = writing(session, handles, seen, async () => gateway.base, waits?.pauseMillis)
    end = running.end
    await sleep(4000)
    // The first requests find processes that have compiled nothing yet.
    if (waits !== undefined) seen.waits.length = 0
    let own: Row["figures"] = {}
    for (let time = 0; time < times; time++) {
      own = { ...own, ...(await disturb(actors[time % actors.length]!, deployment, seen)) }
      await sleep(times === 1 ? 8000 : 5000)
    }
    await end()
    const after = outcome()
    await Promise.all(handles.map((handle) => register(after, gateway.base, session, handle)))
    const { lost, twice } = await missing(gateway.base, session, handles, running.written)
    const longest = Math.round(Math.max(...seen.waits))
    const unexpected = [...seen.errors.keys()].filter((error) => !(unavailable && error === "503 unavailable"))
    const { counted } = running
    return {
      id,
      ok:
        lost === 0 &&
        twice === 0 &&
        counted.lost === 0 &&
        counted.disturbed === 0 &&
        counted.acknowledged > 0 &&
        unexpected.length === 0 &&
        after.errors.size === 0 &&
        !Object.values(own).includes(false) &&
        longest <= longestMillis,
      what,
      figures: {
        ...figures(seen),
        "writes lost": lost,
        "writes duplicated": twice,
        counted: counted.acknowledged,
        "counts lost": counted.lost,
        "counts without a write": counted.disturbed,
        "works after": after.errors.size === 0,
        ...own,
      },
      ...(waits === undefined
        ? {}
        : {
            goals: [
              { what: "longest wait of a caller, in ms", value: longest, atMost: waits.longest },
              {
                what: "wait of one in 100 requests, in ms",
                value: round(percentile(seen.waits, 0.99), 0),
                atMost: waits.p99,
              },
            ],
          }),
    } satisfies Row
  } finally {
    await end()
    await deployment.stop()
  }
}

export const failover = () =>
  disturbed({
    id: "failover",
    what: "kill -9 of one of two actor processes under load of 100 Identities",
    disturb: async (victim) => victim.signal("SIGKILL"),
    longestMillis: 2000,
    unavailable: false,
  })

export const drain = () =>
  disturbed({
    id: "drain",
    what: "SIGTERM to one of two actor processes under the same load, and a replacement started",
    disturb: async (victim, deployment, { waits }) => {
      const longestFrom = (index: number) => Math.round(Math.max(0, ...waits.slice(index)))
      const before = waits.length
      victim.signal("SIGTERM")
      const code = await victim.exited
      // A process that stops regularly unregisters itself, so that its shards move without waiting for a lock to
      // expire.
      const [remaining] = await inStore<{ n: number }>(deployment, "select count(*)::int as n from cluster_runners")
      await sleep(4000)
      const leaving = longestFrom(before)
      const joined = waits.length
      await deployment.start(["actors"])
      await sleep(5000)
      return {
        "shut down regularly": typeof code === "number" && remaining!.n === 1,
        "longest ms during shutdown": leaving,
        "longest ms during start": longestFrom(joined),
      }
    },
    longestMillis: 2000,
    unavailable: false,
    // 100 callers without a pause use both processors of a small machine, and then wait for a processor.
    waits: { pauseMillis: 400, longest: 500, p99: 150 },
  })

export const freeze = () =>
  disturbed({
    id: "freeze",
    what: "SIGSTOP of one of two actor processes for 8 s (longer than callers wait), then SIGCONT, three times under the same load",
    disturb: async (victim) => {
      victim.signal("SIGSTOP")
      await sleep(8000)
      victim.signal("SIGCONT")
    },
    times: 3,
    // A suspended process keeps its connections, so callers may wait for their own deadline and receive `unavailable`.
    longestMillis: 10_000,
    unavailable: true,
  })

export const cut = () =>
  disturbed({
    id: "cut",
    what: "every lock session of the cluster terminated in the database under the same load",
    disturb: async (_victim, deployment) => {
      await inStore(
        deployment,
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc:ClusterSql'`,
      )
    },
    longestMillis: 10_000,
    unavailable: true,
  })

/** Creates Identities while the only process is killed at random moments and restarted. */
export const killCreate = async (): Promise<Row> => {
  const deployment = await deploy()
  const kills = times(50)
  try {
    let service = await deployment.start()
    const { session } = await signUp(service.base)
    const acknowledged: Array<string> = []
    const seen = outcome()
    let next = 0
    let killing = true
    let onAcknowledged = () => {}
    let interrupted = 0
    const creators = Array.from({ length: 8 }, async () => {
      while (next < kills * 4 || killing) {
        next++
        const handle = newHandle("kill")
        const answer = await timed(seen, 202, service.base, "POST", "/api/identities", {
          token: session,
          body: { handle },
        })
        if (answer !== undefined) {
          acknowledged.push(handle)
          onAcknowledged()
        } else await sleep(50)
        await sleep(25)
      }
    })
    for (let kill = 0; kill < kills; kill++) {
      await sleep(100 + Math.random() * 400)
      await new Promise<void>((resolve) => (onAcknowledged = resolve))
      await sleep(Math.random() * 4)
      const killedAt = new Date().toISOString()
      service.signal("SIGKILL")
      await service.exited
      service = await deployment.start()
      // The next process resumes them after a few seconds, so here they are still in the state that the kill left.
      const [remaining] = await inStore<{ n: number }>(
        deployment,
        `select count(*)::int as n from identity where status = 'provisioning' and created_at < '${killedAt}'`,
      )
      interrupted += remaining!.n
    }
    killing = false
    await Promise.all(creators)
    interface Created {
      readonly handle: string
      readonly status: string
      readonly tunnel: { readonly port: number }
    }
    const isSettled = ({ status }: Created) => status === "ready" || status === "failed"
    let all: ReadonlyArray<Created> = []
    await until(
      "every saga's end",
      async () => {
        const { status, body } = await call(service.base, "GET", "/api/identities", { token: session })
        if (status === 200) all = body.identities
        return status === 200 && all.every(isSettled)
      },
      60,
    ).catch(() => {})
    const unfinished = all.filter((identity) => !isSettled(identity)).length
    const by = new Map(all.map((identity) => [identity.handle, identity]))
    const lost = acknowledged.filter((handle) => !by.has(handle)).length
    const ports = all.map(({ tunnel }) => tunnel.port)
    const [keys] = await inStore<{ most: number }>(
      deployment,
      "select coalesce(max(n), 0)::int as most from (select count(*) as n from api_key where identity_id is not null group by identity_id) k",
    )
    const failed = all.filter(({ status }) => status === "failed").length
    return {
      id: "kill-create",
      ok:
        lost === 0 &&
        failed === 0 &&
        unfinished === 0 &&
        interrupted > 0 &&
        new Set(ports).size === ports.length &&
        keys!.most === 1,
      what: `kill -9 of the whole service 0 to 4 ms after the acknowledgement of a creation, ${kills} times in ${next} creations, restarted each time`,
      figures: {
        acknowledged: acknowledged.length,
        "interrupted while provisioning": interrupted,
        lost,
        ready: all.length - failed - unfinished,
        failed,
        "unfinished after 60 s": unfinished,
        "ports duplicated": ports.length - new Set(ports).size,
        "keys per Identity": keys!.most,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Claims 100 spellings of one name concurrently over three processes. */
export const handleRace = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const nodes = [await deployment.start(), await deployment.start(), await deployment.start()]
    const owners = await Promise.all(Array.from({ length: 10 }, () => signUp(nodes[0]!.base)))
    const name = newHandle("race").slice(0, 20)
    const spellings = Array.from({ length: 100 }, (_, i) => {
      const cut = 1 + (i % (name.length - 4))
      return `${name.slice(0, cut)}${i % 2 === 0 ? "-" : ""}${i % 3 === 0 ? name.slice(cut).toUpperCase() : name.slice(cut)}`
    })
    const answers = await Promise.all(
      spellings.map((handle, i) =>
        call(nodes[i % 3]!.base, "POST", "/api/identities", { token: owners[i % 10]!.session, body: { handle } }),
      ),
    )
    const won = answers.filter(({ status }) => status === 202).length
    const taken = answers.filter(({ body }) => body.code === "handle_taken").length
    const other = answers.find(({ status, body }) => status !== 202 && body.code !== "handle_taken")
    return {
      id: "handle-race",
      ok: won === 1 && taken === 99,
      what: "100 creations of spellings of one name over three processes",
      figures: { created: won, handle_taken: taken, other: other === undefined ? "none" : JSON.stringify(other.body) },
    }
  } finally {
    await deployment.stop()
  }
}
