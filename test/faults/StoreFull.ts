/** Fills the disk of the embedded database under load and frees it again. */
import { execFileSync } from "node:child_process"
import { appendFileSync, chmodSync, mkdtempSync, rmSync, statfsSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { call, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { type Row } from "../harness/Report.ts"
import { manyIdentities } from "./Cluster.ts"
import { figures, note, outcome, type Outcome } from "./Load.ts"
import { missing, register, webhook } from "./Writes.ts"

const diskMegabytes = 600
/** Free space after the disk was filled; the load uses the rest. */
const leftBytes = 4 * 1024 * 1024
/** Time by which a request must have been rejected. */
const mostSeconds = 120

const sum = ({ errors }: Outcome) => [...errors.values()].reduce((all, n) => all + n, 0)

/** Creates a small file system, which requires root. */
const smallDisk = () => {
  if (process.getuid?.() !== 0) throw new Error("store-full mounts a small disk, which requires root")
  const folder = mkdtempSync(path.join(os.tmpdir(), "svc-small-"))
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${diskMegabytes}m,mode=0755`, "tmpfs", folder])
  const filler = path.join(folder, "filler")
  const free = () => {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  }
  return {
    folder,
    free,
    /** Fills all but this many bytes; each call fills more. */
    fill: (leaving: number) => {
      try {
        appendFileSync(filler, Buffer.alloc(Math.max(0, free() - leaving)))
      } catch {
        // The load was faster.
      }
    },
    empty: () => rmSync(filler, { force: true }),
    remove: () => {
      execFileSync("umount", ["--lazy", folder])
      rmSync(folder, { recursive: true })
    },
  }
}

export const storeFull = async (): Promise<Row> => {
  const disk = smallDisk()
  chmodSync(disk.folder, 0o755)
  const deployment = await deploy({ directory: disk.folder })
  let isRunning = true
  try {
    const service = await deployment.start()
    const { session: token } = await signUp(service.base)
    const handles = await manyIdentities(service.base, token, 10)
    const seen = outcome()
    const smtp = outcome()
    const written: Array<string> = []
    const accepted: Array<string> = []
    let hints = 0
    const callers = handles.map(async (handle) => {
      while (isRunning) {
        const id = await register(seen, service.base, token, handle)
        if (id !== undefined) written.push(id)
        else if (hints < 5) {
          // A rejection as the caller sees it, which must say whether to retry.
          const { status, body } = await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
            token,
            body: webhook(),
          }).catch(() => ({ status: 0, body: undefined }))
          if (status === 201) written.push(body.id)
          else if (status !== 0) {
            hints++
            if (body.agent_hint !== "wait") note(seen, `${status} without wait`)
          }
        }
        await sleep(100)
      }
    })
    const sender = (async () => {
      for (let at = 0; isRunning; at++) {
        const subject = `full ${at}`
        // Large enough to fill the remaining space quickly.
        const text = `${Math.random()}\r\n`.repeat(4000)
        const reply = await send(service.smtpPort, {
          from: "a@example.org",
          to: `${handles[at % handles.length]}@mail.localhost`,
          subject,
          text,
        }).then(
          () => "250",
          (error: { responseCode?: number; code?: string }) => String(error.responseCode ?? error.code),
        )
        if (reply === "250") accepted.push(subject)
        else note(smtp, reply)
        await sleep(50)
      }
    })()
    await sleep(2000)
    /**
     * Keeps the disk full for that long, and until the load notices it: on a slow machine the load fills the remaining
     * space itself.
     */
    const fullFor = async (seconds: number) => {
      const before = { calls: sum(seen), mails: sum(smtp) }
      const isMet = () => sum(seen) > before.calls && sum(smtp) > before.mails
      disk.fill(leftBytes)
      const start = Date.now()
      const passed = () => (Date.now() - start) / 1000
      while (passed() < seconds || (!isMet() && passed() < mostSeconds)) {
        await sleep(100)
        if (passed() > seconds / 2 && !isMet()) disk.fill(0)
      }
      disk.empty()
    }
    await fullFor(15)
    await sleep(5000)
    // Repeats it, since the first time must leave nothing behind that prevents recovery.
    await fullFor(10)
    await until(
      "the service's return",
      async () => (await call(service.base, "GET", "/api/healthz").catch(() => undefined))?.status === 200,
      60,
    )
    await sleep(3000)
    isRunning = false
    await Promise.all([...callers, sender])
    const after = outcome()
    for (const handle of handles) {
      const id = await register(after, service.base, token, handle)
      if (id !== undefined) written.push(id)
    }
    const { lost, twice } = await missing(service.base, token, handles, written)
    const listed: Array<string> = []
    for (const handle of handles) {
      let cursor = ""
      do {
        const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?limit=100${cursor}`, {
          token,
        })
        listed.push(...body.messages.map(({ subject }: { subject: string }) => subject))
        cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
      } while (cursor !== "")
    }
    const lostMail = accepted.filter((subject) => !listed.includes(subject)).length
    const refused = seen.errors.size > 0 && smtp.errors.size > 0
    // Responses during an outage, including that of the audit log. Rejections without `wait` are noted under other
    // names.
    const waits = new Set(["503 unavailable", "503 audit_unavailable"])
    const unexpected = [...seen.errors.keys()].filter((error) => !waits.has(error))
    return {
      id: "store-full",
      ok:
        refused &&
        unexpected.length === 0 &&
        [...smtp.errors.keys()].every((reply) => /^4\d\d$/.test(reply)) &&
        after.errors.size === 0 &&
        lost === 0 &&
        twice === 0 &&
        lostMail === 0,
      what: `the disk of the database (${diskMegabytes} MB) filled twice, for 15 and 10 s, under writes and mail`,
      figures: {
        ...figures(seen),
        smtp: [...smtp.errors].map(([reply, n]) => `${n}×${reply}`).join(", ") || "none refused",
        "mail accepted": accepted.length,
        "writes lost": lost,
        "writes duplicated": twice,
        "mail lost": lostMail,
        "works after": after.errors.size === 0,
      },
    }
  } finally {
    isRunning = false
    disk.empty()
    await deployment.stop()
    disk.remove()
  }
}
