/** Connector faults: processes that crash or are suspended, and malicious platforms. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { startServer } from "../connectors/mastodon/Server.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { times } from "./Load.ts"
import { inStore, persistentQuery } from "./Store.ts"

const at = (handle: string, rest = "") => `/api/identities/${handle}/connectors${rest}`

/** Connects an Identity to an account of the server. */
const connected = async (base: string, token: string, server: Awaited<ReturnType<typeof startServer>>) => {
  const { handle } = await makeIdentity(base, token)
  const bot = server.world.join(`bot${handle}`)
  const start = await call(base, "POST", at(handle, "/mastodon/authorize"), { token, body: { account: server.base } })
  const callback = server.allow(start.body.authorization_url, bot)
  const made = await call(base, "POST", "/api/connectors/callback", { token, body: { callback } })
  if (made.status !== 200) throw new Error(`connecting answered ${made.status}: ${JSON.stringify(made.body)}`)
  return { handle, bot }
}

const roles = async (deployment: Deployment) => {
  const actors = [await deployment.start(["actors"]), await deployment.start(["actors"])]
  return { actors, gateway: await deployment.start(["api"]) }
}

/** Makes a poll due now. */
const pollNow = async (base: string, token: string, handle: string) => {
  for (const paused of [true, false]) {
    await call(base, "PATCH", at(handle, "/mastodon"), { token, body: { paused } }).catch(() => undefined)
  }
}

const mentions = async (base: string, token: string) => {
  const texts: Array<string> = []
  let cursor: string | null = null
  do {
    const page: { body: any } = await call(
      base,
      "GET",
      `/api/events?type=connector.mention&limit=200${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
      { token },
    )
    texts.push(...page.body.events.map(({ data }: any) => data.post.text as string))
    cursor = page.body.next_cursor
  } while (cursor !== null)
  return texts
}

/** Delays the mark of a poll, which is committed after its Events, so that a fault can hit the moment between both. */
const delayMarks = async (deployment: Deployment) => {
  await inStore(
    deployment,
    "create function delay_mark() returns trigger language plpgsql as 'begin perform pg_sleep(0.5); return new; end'",
  )
  await inStore(
    deployment,
    "create trigger delay_mark before update of mark on connector for each row execute function delay_mark()",
  )
}

/** Statements that wait in the delay of {@link delayMarks}. */
const delayed = "select pid from pg_stat_activity where wait_event = 'PgSleep' and query like '%update connector%'"

/**
 * Kills runners during polls. Every second kill falls between the Events of a poll and its mark, whose statement is
 * canceled, so that the poll is repeated. Each mention must raise one Event.
 */
export const pollKill = async (): Promise<Row> => {
  const kills = times(50)
  const deployment = await deploy()
  const server = await startServer()
  const closing: Array<() => Promise<void>> = []
  try {
    const { actors, gateway } = await roles(deployment)
    const { session } = await signUp(gateway.base)
    const { handle, bot } = await connected(gateway.base, session, server)
    await delayMarks(deployment)
    const store = await persistentQuery(deployment)
    closing.push(store.close)
    await sleep(3_000)
    const grace = server.world.join("grace")
    let between = 0
    for (let n = 1; n <= kills; n++) {
      server.world.publish(grace, `@${bot.acct} ${n}`)
      const next = deployment.start(["actors"])
      const poll = pollNow(gateway.base, session, handle)
      const victim: Process = actors.shift()!
      if (n % 2 === 0) {
        await until("the mark of a poll", async () => (await store.look(delayed)).length > 0, 20).catch(() => {})
        victim.signal("SIGKILL")
        between += (await store.look(`select pg_terminate_backend(pid) from (${delayed}) marks`)).length
      } else {
        await sleep(Math.random() * 300)
        victim.signal("SIGKILL")
      }
      await Promise.all([victim.exited, poll])
      actors.push(await next)
    }
    await pollNow(gateway.base, session, handle)
    await until("every mention", async () => (await mentions(gateway.base, session)).length >= kills, 120).catch(
      () => undefined,
    )
    const reported = await mentions(gateway.base, session)
    const distinct = new Set(reported).size
    return {
      id: "poll-kill",
      ok: distinct === kills && reported.length === kills && between > 0,
      what: `${kills} mentions, with a runner killed during the poll of each`,
      figures: {
        kills,
        "polls interrupted between Events and mark": between,
        lost: kills - distinct,
        doubled: reported.length - distinct,
      },
    }
  } finally {
    for (const close of closing) await close()
    await deployment.stop()
    await server.stop()
  }
}

/** The process with a connection to a port of this machine. */
const clientOf = (port: number, processes: ReadonlyArray<Process>): Process | undefined => {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const sockets = ["tcp", "tcp6"].flatMap((kind) =>
    readFileSync(`/proc/net/${kind}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((columns) => columns[2]?.endsWith(remote) === true)
      .map((columns) => `socket:[${columns[9]}]`),
  )
  return processes.find(({ child }) => {
    const folder = `/proc/${child.pid}/fd`
    return readdirSync(folder).some((name) => {
      try {
        return sockets.includes(readlinkSync(`${folder}/${name}`))
      } catch {
        return false
      }
    })
  })
}

/**
 * Suspends the owner of a Connector while another process takes over, and resumes it. Its refresh token is valid once, so
 * the worst moment is between the platform's response to a refresh and its commit: every second suspension falls there.
 */
export const refreshRace = async (): Promise<Row> => {
  const rounds = times(10)
  const deployment = await deploy()
  // Each call refreshes, since the token expires within a minute.
  const server = await startServer({ tokenSeconds: 30 })
  try {
    const { actors, gateway } = await roles(deployment)
    const { session } = await signUp(gateway.base)
    const { handle } = await connected(gateway.base, session, server)
    /**
     * Suspends the process whose refresh the platform has completed, before it receives the response. Returns undefined
     * if there is no refresh for a minute, as after the Connector was stopped.
     */
    const suspendedAtRefresh = () =>
      new Promise<Process | undefined>((resolve) => {
        setTimeout(() => resolve(undefined), 60_000)
        server.settings.after = async (route) => {
          const owner = route === "POST /oauth/token" ? clientOf(Number(new URL(server.base).port), actors) : undefined
          if (owner === undefined) return
          server.settings.after = async () => {}
          owner.signal("SIGSTOP")
          resolve(owner)
        }
      })
    const reading = { busy: true, answered: 0, other: 0 }
    const reader = (async () => {
      while (reading.busy) {
        const answer = await call(gateway.base, "GET", at(handle, "/mastodon/posts"), { token: session }).catch(
          () => undefined,
        )
        if (answer?.status === 200) reading.answered++
        else reading.other++
        await sleep(100)
      }
    })()
    for (let n = 0; n < rounds; n++) {
      const owner = await suspendedAtRefresh()
      if (owner === undefined) break
      if (n % 2 === 1) {
        owner.signal("SIGCONT")
        await sleep(Math.random() * 200)
        owner.signal("SIGSTOP")
      }
      await sleep(8_000)
      owner.signal("SIGCONT")
      await sleep(2_000)
    }
    reading.busy = false
    await reader
    const connector = await call(gateway.base, "GET", at(handle, "/mastodon"), { token: session })
    return {
      id: "refresh-race",
      ok: server.settings.spentTwice === 0 && connector.body.status === "connected" && reading.answered > 0,
      what: `the owner of a Connector suspended for 8 s while another process takes over, ${rounds} times, with a credential refresh in every call`,
      figures: {
        "tokens spent twice": server.settings.spentTwice,
        status: connector.body.status,
        "calls succeeded": reading.answered,
        "calls rejected": reading.other,
      },
    }
  } finally {
    await deployment.stop()
    await server.stop()
  }
}

const json = { "content-type": "application/json" }
const pour = (response: ServerResponse, piece: string) => {
  response.writeHead(200, json)
  const more = () => {
    while (response.writable && response.write(piece));
  }
  response.on("drain", more)
  more()
}

/** Responses of a malicious server to any request. */
const harms: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "never respond": () => {},
  "respond slowly without an end": (response) => {
    response.writeHead(200, json)
    const timer = setInterval(() => response.write(" "), 200)
    response.on("close", () => clearInterval(timer))
  },
  "respond without an end": (response) => pour(response, "[".repeat(65_536)),
  "return deeply nested JSON": (response) => response.writeHead(200, json).end("[".repeat(1_000_000)),
  "return a million values": (response) => response.writeHead(200, json).end(`[${"1,".repeat(500_000)}1]`),
  "redirect to an internal address": (response) =>
    response.writeHead(302, { location: "http://169.254.169.254/latest/" }).end(),
  "is no API": (response) => response.writeHead(200, json).end(`{"id":{"__proto__":1},"content":[]}`),
  "request an endless delay": (response) => response.writeHead(429, { ...json, "retry-after": "999999999" }).end("{}"),
}

/**
 * Maximum latency of 99 of 100 regular calls in milliseconds on a busy machine; parsing one long response takes more.
 */
const plainAtMost = 250

/** Connects to malicious servers. The service and a Connector to a good server must continue to work. */
export const hostileInstance = async (): Promise<Row> => {
  const deployment = await deploy()
  const good = await startServer()
  let harm: ((response: ServerResponse) => void) | undefined
  const servers: Array<Awaited<ReturnType<typeof startServer>>> = []
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const well = await connected(service.base, session, good)
    const handles: Array<string> = []
    for (const answer of Object.values(harms)) {
      const server = await startServer({
        instead: (request, response) => {
          if (harm === undefined) return false
          request.resume()
          answer(response)
          return true
        },
      })
      servers.push(server)
      handles.push((await connected(service.base, session, server)).handle)
    }
    harm = () => {}
    const waits: Array<number> = []
    const health: Array<number> = []
    const answers = new Map<number, number>()
    const end = Date.now() + 20_000
    const timed = async (into: Array<number>, run: () => Promise<unknown>) => {
      const start = performance.now()
      await run()
      into.push(performance.now() - start)
    }
    await Promise.all([
      ...handles.map(async (handle) => {
        while (Date.now() < end) {
          await pollNow(service.base, session, handle)
          const { status } = await call(service.base, "GET", at(handle, "/mastodon/notifications"), { token: session })
          answers.set(status, (answers.get(status) ?? 0) + 1)
        }
      }),
      (async () => {
        while (Date.now() < end) {
          await timed(waits, () =>
            call(service.base, "POST", at(well.handle, "/mastodon/posts"), { token: session, body: { text: "on" } }),
          )
          await sleep(50)
        }
      })(),
      (async () => {
        while (Date.now() < end) {
          await timed(health, () => fetch(`${service.base}/api/handles/x`))
          await sleep(20)
        }
      })(),
    ])
    const inside = [...answers.keys()].every((status) => [409, 429, 502, 503].includes(status))
    return {
      id: "hostile-instance",
      ok: inside && waits.length > 10 && percentile(health, 0.99) <= plainAtMost,
      what: `${handles.length} Connectors whose servers ${Object.keys(harms).join(", ")}, beside one to a working server`,
      figures: {
        "posts to the good server": waits.length,
        "p50 ms of such a post": round(percentile(waits, 0.5)),
        "p99 ms of such a post": round(percentile(waits, 0.99)),
        "p99 ms of a regular call": round(percentile(health, 0.99)),
        answers: [...answers].map(([status, count]) => `${status}: ${count}`).join(", "),
      },
    }
  } finally {
    await deployment.stop()
    await Promise.all([good, ...servers].map(({ stop }) => stop()))
  }
}
