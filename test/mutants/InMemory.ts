/**
 * Runs tests with planted bugs without changing a file: one Vitest process has a project for each bug, which replaces the
 * text of one module when it is loaded. It takes about five seconds for each bug, a fraction of what a process for each takes.
 */
import { spawn } from "node:child_process"
import { hash } from "node:crypto"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Mutant, root } from "./Mutant.ts"

export interface InMemory {
  readonly name: string
  /** Undefined runs the files without a bug. */
  readonly mutant?: Mutant | undefined
  /** Test files; none of them starts a process of the service, which would read the files without the bug. */
  readonly files: ReadonlyArray<string>
}

/** Returns the name of the bug's project. Vitest keeps the modules of a project by its name. */
export const idOf = ({ name, mutant }: InMemory): string => hash("sha1", JSON.stringify(mutant ?? name)).slice(0, 12)

/** The maximum time for a test or hook: shorter than in other runs, because many bugs let a test wait. */
export const maxTestMillis = 60_000
/** A process without a result for this time has an endless loop. */
const silenceMillis = 120_000
/** Each project of Vitest needs memory and has a server. */
const batchSize = 40

/**
 * Runs one batch. Returns what noticed each bug, the name of a test or undefined, and the bugs whose tests began but did not
 * end.
 */
const runBatch = async (batch: ReadonlyArray<InMemory>) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "svc-plants-"))
  try {
    writeFileSync(path.join(folder, "bugs.json"), JSON.stringify(batch))
    const bin = path.join(root, "node_modules", ".bin")
    const child = spawn("vitest", ["run", "--config", "test/mutants/plant.config.ts"], {
      cwd: root,
      env: {
        ...process.env,
        PATH: `${bin}${path.delimiter}${process.env["PATH"]}`,
        NO_COLOR: "1",
        SVC_PLANTS: folder,
      },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk))
    const stop = () => {
      try {
        process.kill(-child.pid!, "SIGKILL")
      } catch {
        // It has ended.
      }
    }
    process.once("exit", stop)
    let [results, since] = [0, Date.now()]
    const watch = setInterval(() => {
      const count = readdirSync(folder).length
      if (count !== results) [results, since] = [count, Date.now()]
      else if (Date.now() - since > silenceMillis) stop()
    }, 1_000)
    await new Promise((resolve) => child.on("close", resolve))
    clearInterval(watch)
    process.off("exit", stop)
    const read = (what: string) => {
      const file = path.join(folder, what)
      return existsSync(file) ? readFileSync(file, "utf8") : undefined
    }
    const found = new Map<string, string | undefined>()
    const begun: Array<InMemory> = []
    for (const bug of batch) {
      const by = read(`noticed-${idOf(bug)}`)
      if (by !== undefined || read(`ended-${idOf(bug)}`) !== undefined) found.set(bug.name, by)
      else if (read(`began-${idOf(bug)}`) !== undefined) begun.push(bug)
    }
    if (found.size === 0 && begun.length === 0) throw new Error(output)
    return { found, begun }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Calls `report` with each result. */
export const judgeInMemory = async (
  bugs: ReadonlyArray<InMemory>,
  report: (bug: InMemory, by: string | undefined) => void,
): Promise<void> => {
  let open = bugs
  while (open.length > 0) {
    const batch = open.slice(0, batchSize)
    const { found, begun } = await runBatch(batch)
    for (const bug of batch) if (found.has(bug.name)) report(bug, found.get(bug.name))
    for (const bug of begun) {
      const alone = await runBatch([bug])
      report(bug, alone.begun.length > 0 ? "does not end" : alone.found.get(bug.name))
    }
    open = open.filter((bug) => !found.has(bug.name) && !begun.includes(bug))
  }
}
