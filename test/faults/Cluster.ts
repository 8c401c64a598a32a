/** Faults of processes: killed, frozen, cut off from the store, while callers go on. */
import { execFileSync } from "node:child_process"
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process, until } from "../harness/Deployment.ts"
import { type Row } from "../harness/Report.ts"
import { figures, outcome, timed } from "./Load.ts"
import { inStore } from "./Store.ts"

/** One gateway that is asked, and two processes of actors, one of which is going to suffer. */
const threeRoles = async (deployment: Deployment) => {
  const actors = [await deployment.start(["actors"]), await deployment.start(["actors"])]
  const gateway = await deployment.start(["api", "mail"])
  return { gateway, actors }
}

/** Nothing is disturbed yet, so a machine too busy to answer in time is asked again. */
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

/** Reads and writes to every Identity for some seconds: half of the calls register a Webhook, which is a write of the actor. */
const load = async (base: string, token: string, handles: ReadonlyArray<string>, seconds: number) => {
  const seen = outcome()
  const written: Array<string> = []
  const end = Date.now() + seconds * 1000
  await Promise.all(
    handles.map(async (handle) => {
      while (Date.now() < end) {
        const answer = await timed(seen, 201, base, "POST", `/api/identities/${handle}/webhooks`, {
          token,
          body: { url: "http://127.0.0.1:9/", event_types: ["email.sent"] },
        })
        if (answer !== undefined) written.push(answer.body.id)
        await timed(seen, 200, base, "GET", `/api/identities/${handle}`, { token })
        await sleep(100)
      }
    }),
  )
  return { seen, written }
}

/** Every acknowledged write is there, once. */
export const missing = async (
  base: string,
  token: string,
  handles: ReadonlyArray<string>,
  written: ReadonlyArray<string>,
) => {
  const listed: Array<string> = []
  for (const handle of handles) {
    let cursor = ""
    do {
      const { body } = await call(base, "GET", `/api/identities/${handle}/webhooks?limit=100${cursor}`, { token })
      listed.push(...body.webhooks.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
    } while (cursor !== "")
  }
  const there = new Set(listed)
  return { lost: written.filter((id) => !there.has(id)).length, twice: listed.length - there.size }
}

const disturbed = async (
  id: string,
  what: string,
  disturb: (victim: Process, deployment: Deployment) => Promise<void>,
  allowed: { readonly longestMillis: number; readonly unavailable: boolean },
): Promise<Row> => {
  const deployment = await deploy()
  try {
    const { gateway, actors } = await threeRoles(deployment)
    const { session } = await signUp(gateway.base)
    const handles = await manyIdentities(gateway.base, session, 100)
    const loading = load(gateway.base, session, handles, 15)
    await sleep(4000)
    await disturb(actors[0]!, deployment)
    const { seen, written } = await loading
    const { lost, twice } = await missing(gateway.base, session, handles, written)
    const longest = Math.max(...seen.waits)
    const unexpected = [...seen.errors.keys()].filter((error) => !(allowed.unavailable && error === "503 unavailable"))
    return {
      id,
      ok: lost === 0 && twice === 0 && unexpected.length === 0 && longest <= allowed.longestMillis,
      what,
      figures: { ...figures(seen), "writes lost": lost, "writes doubled": twice },
    }
  } finally {
    await deployment.stop()
  }
}

export const failover = () =>
  disturbed(
    "failover",
    "kill -9 of one of two actor processes under load of 100 Identities",
    async (victim) => victim.signal("SIGKILL"),
    { longestMillis: 4000, unavailable: false },
  )

export const drain = () =>
  disturbed(
    "drain",
    "SIGTERM to one of two actor processes under the same load",
    async (victim) => victim.signal("SIGTERM"),
    { longestMillis: 4000, unavailable: false },
  )

export const freeze = () =>
  disturbed(
    "freeze",
    "SIGSTOP of one of two actor processes for 6 s (twice the lock's expiry), then SIGCONT, under the same load",
    async (victim) => {
      victim.signal("SIGSTOP")
      await sleep(6000)
      victim.signal("SIGCONT")
    },
    // A frozen process keeps its connections, so a caller may wait for its own deadline and be told `unavailable`.
    { longestMillis: 10_000, unavailable: true },
  )

export const cut = () =>
  disturbed(
    "cut",
    "every database connection of the cluster's lock sessions ended under the same load",
    async (_victim, deployment) => {
      await inStore(
        deployment,
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc:ClusterSql'`,
      )
    },
    { longestMillis: 10_000, unavailable: true },
  )

/** 200 creations while the only process is killed at random moments and started again. */
export const killCreate = async (): Promise<Row> => {
  const deployment = await deploy()
  const kills = 50
  try {
    let service = await deployment.start()
    const { session } = await signUp(service.base)
    const acknowledged: Array<string> = []
    const seen = outcome()
    let next = 0
    let killing = true
    const creators = Array.from({ length: 8 }, async () => {
      while (next < 200 || killing) {
        next++
        const handle = newHandle("kill")
        const answer = await timed(seen, 202, service.base, "POST", "/api/identities", {
          token: session,
          body: { handle },
        })
        if (answer !== undefined) acknowledged.push(handle)
        else await sleep(50)
        await sleep(25)
      }
    })
    for (let kill = 0; kill < kills; kill++) {
      await sleep(100 + Math.random() * 400)
      service.signal("SIGKILL")
      await service.gone
      service = await deployment.start()
    }
    killing = false
    await Promise.all(creators)
    const settled = async () => {
      const { body } = await call(service.base, "GET", "/api/identities", { token: session })
      return body.identities as ReadonlyArray<{ handle: string; status: string; tunnel: { port: number } }>
    }
    await until(
      "every saga's end",
      async () => (await settled()).every(({ status }) => status === "ready" || status === "failed"),
      60,
    )
    const all = await settled()
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
      ok: lost === 0 && failed === 0 && new Set(ports).size === ports.length && keys!.most === 1,
      what: `kill -9 of the whole service at ${kills} random moments of ${next} creations, started again each time`,
      figures: {
        acknowledged: acknowledged.length,
        lost,
        ready: all.length - failed,
        failed,
        "ports doubled": ports.length - new Set(ports).size,
        "keys per Identity": keys!.most,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** 100 spellings of one name at once over three processes. */
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

/** A process and its children: each backend is a session of its own, out of reach of a group signal. */
const processTree = (pid: number): ReadonlyArray<number> => [
  pid,
  ...execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(Number),
]

/** PostgreSQL stopped for 10 s under load. */
export const storeDown = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const handles = await manyIdentities(service.base, session, 10)
    const seen = outcome()
    const smtp = new Map<string, number>()
    let down = true
    const callers = handles.map(async (handle) => {
      while (down) {
        await timed(seen, 201, service.base, "POST", `/api/identities/${handle}/webhooks`, {
          token: session,
          body: { url: "http://127.0.0.1:9/", event_types: ["email.sent"] },
        })
        await sleep(100)
      }
    })
    const { send } = await import("../harness/Mail.ts")
    const sender = (async () => {
      while (down) {
        const reply = await send(service.smtpPort, {
          from: "a@example.org",
          to: `${handles[0]}@mail.localhost`,
          text: String(Math.random()),
        }).then(
          () => "250",
          (error: { responseCode?: number; code?: string }) => String(error.responseCode ?? error.code),
        )
        smtp.set(reply, (smtp.get(reply) ?? 0) + 1)
        await sleep(200)
      }
    })()
    await sleep(1000)
    // Held still, so that nobody can start it again: as a server that hangs or is out of reach.
    const server = processTree(deployment.postgres())
    for (const pid of server) process.kill(pid, "SIGSTOP")
    await sleep(10_000)
    for (const pid of server) process.kill(pid, "SIGCONT")
    await sleep(3000)
    down = false
    await Promise.all([...callers, sender])
    const after = outcome()
    for (const handle of handles) {
      await timed(after, 201, service.base, "POST", `/api/identities/${handle}/webhooks`, {
        token: session,
        body: { url: "http://127.0.0.1:9/", event_types: ["*"] },
      })
    }
    const unexpected = [...seen.errors.keys()].filter((error) => error !== "503 unavailable")
    return {
      id: "store-down",
      ok:
        unexpected.length === 0 &&
        after.errors.size === 0 &&
        [...smtp.keys()].every((reply) => reply === "250" || reply === "451"),
      what: "PostgreSQL held still for 10 s under load, then let go",
      figures: {
        ...figures(seen),
        smtp: [...smtp].map(([reply, n]) => `${n}×${reply}`).join(", "),
        "works after": after.errors.size === 0,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** The server killed under the service: the process that holds a lease starts it again. */
export const storeKilled = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    process.kill(deployment.postgres(), "SIGKILL")
    const start = Date.now()
    await until(
      "the store's return",
      async () => (await call(service.base, "GET", `/api/identities/${handle}`, { token: session })).status === 200,
      30,
    )
    const back = Date.now() - start
    const again = await makeIdentity(service.base, session)
    return {
      id: "store-killed",
      ok: again.identity.status === "ready",
      what: "kill -9 of PostgreSQL under the service, which starts it again",
      figures: { "back after ms": back, "acknowledged Identity there": true },
    }
  } finally {
    await deployment.stop()
  }
}
