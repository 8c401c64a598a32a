/**
 * Takes a backup under load, restores it elsewhere and compares the data. Also tests a wrong key and truncated or
 * altered files.
 */
import { spawn } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { type Row } from "../harness/Report.ts"

const main = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.ts")
/** Number of truncated copies of the file, and of copies with a flipped bit. */
const tears = 12

/** Runs a command as an operator would. */
const svc = (directory: string, words: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: number | null; readonly text: string }>((resolve) => {
    const child = spawn(process.execPath, [main, ...words], {
      env: { PATH: process.env["PATH"], SVC_DATA_DIR: directory, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    })
    let text = ""
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()))
    child.once("exit", (code) => resolve({ code, text }))
  })

interface Loaded {
  /** Acknowledged secrets and subjects, with their times. */
  readonly secrets: Map<string, { readonly value: string; readonly at: number }>
  readonly mail: Map<string, number>
  readonly end: () => Promise<void>
}

const load = (base: string, smtpPort: number, token: string, handle: string): Loaded => {
  const secrets: Loaded["secrets"] = new Map()
  const mail: Loaded["mail"] = new Map()
  let isRunning = true
  let next = 0
  const writers = Array.from({ length: 8 }, async () => {
    while (isRunning) {
      const name = `secret.${next++}`
      const value = `value of ${name} ${"x".repeat(next % 900)}`
      const { status } = await call(base, "PUT", `/api/vault/secrets/${name}`, { token, body: { value } })
      if (status < 300) secrets.set(name, { value, at: Date.now() })
    }
  })
  const sender = (async () => {
    for (let at = 0; isRunning; at++) {
      const subject = `restore ${at}`
      await send(smtpPort, {
        from: "a@example.org",
        to: `${handle}@mail.localhost`,
        subject,
        text: "t".repeat(at * 100),
      })
      mail.set(subject, Date.now())
      await sleep(30)
    }
  })()
  return {
    secrets,
    mail,
    end: async () => {
      isRunning = false
      await Promise.all([...writers, sender])
    },
  }
}

/** Returns what is missing or different in a restored service. */
const compare = async (base: string, token: string, handle: string, { secrets, mail }: Loaded, taken: number) => {
  let [missing, wrong] = [0, 0]
  for (const [name, { value, at }] of secrets) {
    const { status, body } = await call(base, "GET", `/api/vault/secrets/${name}/value`, { token })
    // A write during the backup is contained completely or not at all.
    if (status === 200 ? body.value !== value : status !== 404) wrong++
    if (status === 404 && at < taken) missing++
  }
  const subjects = new Set<string>()
  let cursor = ""
  do {
    const { status, body } = await call(base, "GET", `/api/identities/${handle}/messages?limit=100${cursor}`, { token })
    // Without the list, its messages count as lost.
    if (status !== 200) break
    for (const { subject } of body.messages) subjects.add(subject)
    cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
  } while (cursor !== "")
  const lostMail = [...mail].filter(([subject, at]) => at < taken && !subjects.has(subject)).length
  return { missing, wrong, lostMail }
}

export const restore = async (): Promise<Row> => {
  const root = mkdtempSync(path.join(os.tmpdir(), "svc-restored-"))
  chmodSync(root, 0o755)
  const place = (name: string) => {
    const directory = path.join(root, name)
    mkdirSync(directory, { recursive: true })
    chmodSync(directory, 0o755)
    return directory
  }
  const source = place("source")
  const deployment = await deploy({ directory: source })
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const loaded = load(service.base, service.smtpPort, session, handle)
    await sleep(5000)
    const file = path.join(root, "backup.tar.zst")
    const began = Date.now()
    const backup = await svc(source, ["backup", file])
    const took = Date.now() - began
    await sleep(1000)
    await loaded.end()
    await deployment.stop()

    const key = (name: string) => {
      const directory = place(name)
      copyFileSync(path.join(source, "master.key"), path.join(directory, "master.key"))
      return directory
    }
    /** Expects an error message and no created files. */
    const refused = async (directory: string, from: string, env: Readonly<Record<string, string>> = {}) => {
      const { code, text } = await svc(directory, ["restore", from], env)
      return (
        code === 1 && /Nothing was restored/.test(text) && readdirSync(directory).every((name) => name === "master.key")
      )
    }
    const other = Buffer.alloc(32, 9).toString("base64")
    const wrongKey = await refused(place("other"), file, { SVC_MASTER_KEY: other })

    const complete = readFileSync(file)
    const torn = path.join(root, "torn.tar.zst")
    let believed = 0
    for (let at = 0; at < tears; at++) {
      const where = Math.floor((complete.length * (at + 0.5)) / tears)
      const turned = Buffer.from(complete)
      turned[where]! ^= 1 << (at % 8)
      for (const bytes of [complete.subarray(0, where), turned]) {
        writeFileSync(torn, bytes)
        if (!(await refused(key("torn"), torn))) believed++
      }
    }

    const directory = key("restored")
    const restored = await svc(directory, ["restore", file, "--keep-sessions"])
    const elsewhere = await deploy({ directory })
    try {
      const { base } = await elsewhere.start()
      const { missing, wrong, lostMail } = await compare(base, session, handle, loaded, began)
      const isRunning = await makeIdentity(base, session).then(
        ({ identity }) => identity.status === "ready",
        () => false,
      )
      const before = [...loaded.secrets.values()].filter(({ at }) => at < began).length
      return {
        id: "restore",
        ok:
          backup.code === 0 &&
          restored.code === 0 &&
          missing === 0 &&
          wrong === 0 &&
          lostMail === 0 &&
          wrongKey &&
          believed === 0 &&
          isRunning &&
          before > 0,
        what: "svc backup under load, svc restore elsewhere, all earlier acknowledged data compared; also a wrong key and a truncated or altered file",
        figures: {
          "written before": before,
          "written in total": loaded.secrets.size,
          mail: loaded.mail.size,
          missing,
          "with a wrong value": wrong,
          "mail missing": lostMail,
          "wrong key refused": wrongKey,
          [`of ${2 * tears} torn or altered, believed`]: believed,
          "works after": isRunning,
          "backup ms": took,
          "file kB": Math.round(complete.length / 1024),
        },
      }
    } finally {
      await elsewhere.stop()
    }
  } finally {
    await deployment.stop()
    rmSync(root, { recursive: true, force: true })
  }
}
