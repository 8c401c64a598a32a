/**
 * A long mixed load with restarts: one process is observed throughout while another is restarted every minute. Only
 * data that the load adds may grow.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { freePort } from "../harness/Ports.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { figures, note, outcome, timed } from "./Load.ts"
import { inStore } from "./Store.ts"

/** Tables that grow with the load while their rows are retained: mail and Events. */
const growing =
  /^(event|delivery|message|thread|body|blob|search|attachment|audit|idempotency|command|session|sign_in|magic_link|usage|vault_secret_version|folder_|mailbox_change|actor_command)/

interface Sample {
  readonly resident: number
  readonly files: number
  readonly connections: number
}

const sampleOf = async (ops: string): Promise<Sample> => {
  const text = await (await fetch(`${ops}/metrics`)).text()
  // Returns the sum of all series with this name.
  const value = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))].reduce((sum, [, one]) => sum + Number(one), 0)
  return {
    resident: value("process_resident_memory_bytes") / 1024 ** 2,
    files: value("process_open_fds"),
    connections: value("svc_db_connections"),
  }
}

/** Returns the row counts of non-empty tables. Tables that the load only changes must stay small. */
const rowsOf = async (deployment: Parameters<typeof inStore>[0]) => {
  await inStore(deployment, "analyze")
  const rows = await inStore<{ name: string; n: number }>(
    deployment,
    "select relname as name, reltuples::float8 as n from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and reltuples > 0",
  )
  return new Map(rows.map(({ name, n }) => [name, n]))
}

const callers = 8

/** Simulates one user's agents with all kinds of operations until it is stopped, and removes what they created. */
const load = (gateway: () => Process, token: string, handles: ReadonlyArray<string>) => {
  const seen = outcome()
  let isRunning = true
  let mails = 0
  const one = async (handle: string, at: number) => {
    for (let turn = 0; isRunning; turn++) {
      const { base, smtpPort } = gateway()
      const own = `/api/identities/${handle}`
      const value = `value ${turn}`
      await timed(seen, turn === 0 ? 201 : 200, base, "PUT", `/api/vault/secrets/soak.${at}`, {
        token,
        body: { value },
      })
      await timed(seen, 200, base, "GET", `/api/vault/secrets/soak.${at}/value`, { token })
      const hook = await timed(seen, 201, base, "POST", `${own}/webhooks`, {
        token,
        body: { url: "http://127.0.0.1:9/", event_types: ["email.sent"] },
      })
      if (hook !== undefined) await timed(seen, 204, base, "DELETE", `${own}/webhooks/${hook.body.id}`, { token })
      await timed(seen, 200, base, "GET", `${own}/messages?limit=20`, { token })
      await timed(seen, 200, base, "GET", `/api/events?handle=${handle}&limit=20`, { token })
      // A stream that its reader abandons.
      const leaving = new AbortController()
      const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" }
      const stream = `${base}/api/events/stream?handle=${handle}`
      const opened = await fetch(stream, { headers, signal: leaving.signal }).catch(() => undefined)
      if (opened?.status !== 200) note(seen, `a stream: ${opened?.status ?? "the connection broke"}`)
      leaving.abort()
      if (turn % 4 === 0) {
        const subject = `soak ${at} ${turn}`
        await send(smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject, text: "t" }).then(
          () => mails++,
          () => {},
        )
      }
      await sleep(50)
    }
  }
  const ended = Promise.all(handles.map(one))
  return {
    seen,
    mails: () => mails,
    end: async () => {
      isRunning = false
      await ended
    },
  }
}

export const soak = async (): Promise<Row> => {
  const minutes = Number(process.env["FAULTS_MINUTES"] ?? 30)
  const deployment = await deploy()
  const receiver = await startReceiver()
  let end = async () => {}
  try {
    const port = await freePort()
    const watched = await deployment.start([], { SVC_OPS_PORT: String(port) })
    const ops = `http://127.0.0.1:${port}`
    let other = await deployment.start(["actors"])
    const { session } = await signUp(watched.base)
    const handles: Array<string> = []
    for (let at = 0; at < callers; at++) handles.push((await makeIdentity(watched.base, session)).handle)
    const body = { url: receiver.url, event_types: ["email.received"] }
    await call(watched.base, "POST", `/api/identities/${handles[0]}/webhooks`, { token: session, body })
    const running = load(() => watched, session, handles)
    end = running.end
    const samples: Array<Sample> = []
    let before: Map<string, number> | undefined
    let restarts = 0
    const begin = Date.now()
    const over = () => (Date.now() - begin) / 60_000 / minutes
    const every = Math.min(60_000, (minutes * 60_000) / 6)
    let restartAt = begin + every
    while (over() < 1) {
      await sleep(1000)
      samples.push(await sampleOf(ops))
      if (before === undefined && over() > 1 / 3) before = await rowsOf(deployment)
      if (Date.now() < restartAt) continue
      restartAt += every
      other.signal(restarts++ % 2 === 0 ? "SIGTERM" : "SIGKILL")
      await other.exited
      other = await deployment.start(["actors"])
    }
    await running.end()
    const after = await rowsOf(deployment)
    // The first third warms up; then the middle is compared with the end.
    const third = Math.floor(samples.length / 3)
    const [middle, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)]
    const median = (from: ReadonlyArray<Sample>, member: keyof Sample) =>
      percentile(
        from.map((sample) => sample[member]),
        0.5,
      )
    const grown = [...after].flatMap(([table, rows]) => {
      const was = before?.get(table) ?? 0
      return !growing.test(table) && rows > was + 200 ? [`${table} ${Math.round(was)} → ${Math.round(rows)}`] : []
    })
    const memory = median(last, "resident") / median(middle, "resident")
    const files = median(last, "files") - median(middle, "files")
    const unexpected = [...running.seen.errors.keys()].filter((error) => error !== "503 unavailable")
    return {
      id: "soak",
      ok: memory < 1.15 && files < 20 && grown.length === 0 && unexpected.length === 0,
      what: `a mixed load for ${minutes} minutes, with another process of actors restarted every ${round(every / 1000, 0)} s`,
      figures: {
        ...figures(running.seen),
        mail: running.mails(),
        restarts,
        "memory MB, middle": round(median(middle, "resident"), 0),
        "memory MB, end": round(median(last, "resident"), 0),
        "descriptors, middle": median(middle, "files"),
        "descriptors, end": median(last, "files"),
        "connections to the store, end": median(last, "connections"),
        "tables that grew": grown.join(", ") || "none",
      },
    }
  } finally {
    await end()
    await deployment.stop()
    await receiver.stop()
  }
}
