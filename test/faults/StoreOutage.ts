/** Store faults under load: PostgreSQL suspended and PostgreSQL killed. */
import { execFileSync } from "node:child_process"
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import type { Row } from "../harness/Report.ts"
import { manyIdentities } from "./Cluster.ts"
import { figures, outcome } from "./Load.ts"
import { missing, register, writing } from "./Writes.ts"

/** Returns a process and its children: each backend is its own session, which a group signal does not reach. */
const processTree = (pid: number): ReadonlyArray<number> => [
  pid,
  ...execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(Number),
]

/** Suspends PostgreSQL for 10 s under load. */
export const storeDown = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const handles = await manyIdentities(service.base, session, 10)
    const seen = outcome()
    const smtp = new Map<string, number>()
    const written: Array<string> = []
    let down = true
    const callers = handles.map(async (handle) => {
      while (down) {
        const id = await register(seen, service.base, session, handle)
        if (id !== undefined) written.push(id)
        await sleep(100)
      }
    })
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
    // Suspended instead of stopped, so that no process restarts it, like a server that hangs or is unreachable.
    const server = processTree(deployment.postgres())
    for (const pid of server) process.kill(pid, "SIGSTOP")
    await sleep(10_000)
    for (const pid of server) process.kill(pid, "SIGCONT")
    await sleep(3000)
    down = false
    await Promise.all([...callers, sender])
    const after = outcome()
    for (const handle of handles) {
      const id = await register(after, service.base, session, handle)
      if (id !== undefined) written.push(id)
    }
    const { lost, twice } = await missing(service.base, session, handles, written)
    const unexpected = [...seen.errors.keys()].filter((error) => error !== "503 unavailable")
    return {
      id: "store-down",
      ok:
        unexpected.length === 0 &&
        after.errors.size === 0 &&
        lost + twice === 0 &&
        [...smtp.keys()].every((reply) => reply === "250" || reply === "451"),
      what: "PostgreSQL suspended for 10 s under load, then resumed",
      figures: {
        ...figures(seen),
        smtp: [...smtp].map(([reply, n]) => `${n}×${reply}`).join(", "),
        "writes lost": lost,
        "writes duplicated": twice,
        "works after": after.errors.size === 0,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Kills the server several times under load; the process with the lease restarts it. */
export const storeKilled = async (): Promise<Row> => {
  const deployment = await deploy()
  let isRunning = true
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const handles = await manyIdentities(service.base, session, 20)
    const seen = outcome()
    const running = writing(session, handles, seen, async () => service.base)
    const accepted: Array<string> = []
    const sender = (async () => {
      for (let at = 0; isRunning; at++) {
        const subject = `killed ${at}`
        const message = {
          from: "a@example.org",
          to: `${handles[at % handles.length]}@mail.localhost`,
          subject,
          text: "t",
        }
        await send(service.smtpPort, message).then(
          () => accepted.push(subject),
          () => sleep(100),
        )
      }
    })()
    const backs: Array<number> = []
    for (let kill = 0; kill < 3; kill++) {
      await sleep(2000)
      for (const pid of processTree(deployment.postgres())) process.kill(pid, "SIGKILL")
      const start = Date.now()
      const isBack = async () =>
        (await call(service.base, "GET", `/api/identities/${handles[0]}`, { token: session })).status === 200
      await until("the store's return", isBack, 30)
      backs.push(Date.now() - start)
    }
    await sleep(1000)
    isRunning = false
    await Promise.all([running.end(), sender])
    const { lost, twice } = await missing(service.base, session, handles, running.written)
    const listed = new Set<string>()
    for (const handle of handles) {
      let cursor = ""
      do {
        const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?limit=100${cursor}`, {
          token: session,
        })
        for (const { subject } of body.messages) listed.add(subject)
        cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
      } while (cursor !== "")
    }
    const lostMail = accepted.filter((subject) => !listed.has(subject)).length
    const repeated = await makeIdentity(service.base, session)
    const unexpected = [...seen.errors.keys()].filter((error) => !error.startsWith("503 "))
    const { counted } = running
    return {
      id: "store-killed",
      ok:
        repeated.identity.status === "ready" &&
        running.written.length > 0 &&
        accepted.length > 0 &&
        lost + twice + counted.lost + lostMail === 0 &&
        unexpected.length === 0,
      what: "kill -9 of PostgreSQL three times under writes and mail of 20 Identities; the service restarts it",
      figures: {
        ...figures(seen),
        "recovered after ms": backs.join(", "),
        "writes acknowledged": running.written.length,
        "writes lost": lost,
        "writes duplicated": twice,
        "counts lost": counted.lost,
        "mail accepted": accepted.length,
        "mail lost": lostMail,
        "works after": repeated.identity.status === "ready",
      },
    }
  } finally {
    isRunning = false
    await deployment.stop()
  }
}
