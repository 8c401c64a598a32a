/**
 * Verifies the fault rows. Each patch in `mutants/` removes the protection that its row tests; the row must fail in a
 * copy of the checkout with the patch applied.
 */
import { execFileSync, spawn } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { scratchCopy } from "../harness/ScratchCopy.ts"
import { rows } from "./Rows.ts"

export const patchFolder = path.join(import.meta.dirname, "mutants")

/** Returns the row of a patch: `<row>.patch` or `<row>-<what>.patch`, by the longest matching name. */
export const rowOf = (patch: string): string | undefined =>
  Object.keys(rows)
    .filter((row) => patch === `${row}.patch` || patch.startsWith(`${row}-`))
    .toSorted((one, other) => other.length - one.length)[0]

export const patches = (): ReadonlyArray<string> =>
  readdirSync(patchFolder)
    .filter((name) => name.endsWith(".patch"))
    .toSorted()

/** Settings that make a row as short as possible while it still detects its bugs. */
const short: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "device-race": { FAULTS_TIMES: "5" },
  "cut-store-equal": { FAULTS_OPERATIONS: "1000" },
  "imap-many": { FAULTS_OPERATIONS: "3000" },
  "hostile-imap": { FAULTS_TIMES: "1" },
  "hostile-mail": { FAULTS_TIMES: "1" },
  "kill-create": { FAULTS_TIMES: "6" },
  "kill-delete": { FAULTS_TIMES: "3" },
  "kill-mail": { FAULTS_TIMES: "12" },
  "kill-send": { FAULTS_TIMES: "6" },
  model: { FAULTS_OPERATIONS: "8000" },
  "poll-kill": { FAULTS_TIMES: "6" },
  "refresh-race": { FAULTS_TIMES: "4" },
  "proof-rotation": { FAULTS_TIMES: "10" },
  "stop-proof": { FAULTS_TIMES: "3" },
  soak: { FAULTS_MINUTES: "3" },
  "two-programs": { TWO_PROGRAMS_SECONDS: "60" },
}

/** Time after which a row is considered hung. */
const limitMillis = 900_000

interface Replacement {
  /** The changed lines in their current form, with the unchanged lines between them. */
  readonly from: string
  readonly to: string
}

/**
 * Returns what a hunk of a patch replaces in a text: the changed lines, with as much context as makes them unique.
 * Other context is not compared, so that comments may change.
 */
const replacementOf = (hunk: ReadonlyArray<string>, text: string): Replacement | undefined => {
  const isChange = (line: string) => /^[-+]/.test(line)
  const last = hunk.findLastIndex(isChange)
  for (
    let begin = hunk.findIndex(isChange), end = last;
    begin >= 0;
    end = Math.min(end + 1, hunk.length - 1), begin--
  ) {
    const lines = hunk.slice(begin, end + 1)
    const without = (sign: string) =>
      lines
        .filter((line) => !line.startsWith(sign))
        .map((line) => `${line.slice(1)}\n`)
        .join("")
    const from = without("+")
    if (from !== "" && text.split(from).length === 2) return { from, to: without("-") }
  }
  return undefined
}

/** Returns the hunks of a patch by file, as lines. */
const hunksOf = (patch: string): ReadonlyMap<string, ReadonlyArray<ReadonlyArray<string>>> =>
  new Map(
    patch
      .split(/^--- a\//m)
      .slice(1)
      .map((text) => {
        const hunks = text.split(/^@@ .*\n/m).slice(1)
        return [
          text.slice(0, text.indexOf("\n")),
          hunks.map((hunk) => hunk.split("\n").filter((line) => /^[-+ ]/.test(line))),
        ]
      }),
  )

/** Returns the files that a patch changes, with the texts it makes of them. Throws if a change does not fit exactly once. */
export const patched = (folder: string, patch: string): ReadonlyMap<string, string> =>
  new Map(
    [...hunksOf(readFileSync(path.join(patchFolder, patch), "utf8"))].map(([file, hunks]) => {
      const text = hunks.reduce(
        (before, hunk) => {
          const replacement = replacementOf(hunk, before)
          if (replacement === undefined) throw new Error(`${patch}: not found once in ${file}:\n${hunk.join("\n")}`)
          return before.replace(replacement.from, () => replacement.to)
        },
        readFileSync(path.join(folder, file), "utf8"),
      )
      return [file, text]
    }),
  )

/** Returns the repository, for a row that checks out an earlier version, since the copy has no history. */
const repository = () => {
  try {
    const words = ["rev-parse", "--absolute-git-dir"]
    return { GIT_DIR: execFileSync("git", words, { cwd: patchFolder, encoding: "utf8" }).trim() }
  } catch {
    return {}
  }
}

interface Outcome {
  readonly verdict: "green" | "red" | "broken"
  /** The output of the row, one entry per line. */
  readonly printed: ReadonlyArray<string>
}

/** Runs a row in the copy. */
const runRow = (folder: string, row: string) =>
  new Promise<Outcome>((resolve) => {
    const child = spawn(process.execPath, [path.join(folder, "test", "faults", "main.ts"), "--only", row], {
      cwd: folder,
      env: { ...process.env, ...repository(), ...short[row] },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk))
    const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), limitMillis)
    child.on("close", (code) => {
      clearTimeout(timer)
      const printed = output.split("\n").filter((line) => line !== "" && !line.startsWith("{"))
      // A condition that was never met is a verdict. Any other failure is not, nor is a service that does not start.
      const isBroken = /failed to run/.test(output) && (!/ not within \d+ s/.test(output) || /start of /.test(output))
      const isJudged = output.includes(`"id":"${row}"`)
      resolve({ verdict: code === 0 ? "green" : isBroken || !isJudged ? "broken" : "red", printed })
    })
  })

/** Builds the bundle for the processes of the copy, which start three times slower from the sources. */
const bundle = (folder: string) =>
  execFileSync(process.execPath, [path.join(folder, "scripts", "bundle.ts")], { cwd: folder, stdio: "ignore" })

/**
 * Runs the patches of the named rows, or all. Returns whether every row was red with each of its patches, and, if `checked`,
 * green without.
 */
export const judgeRows = async (
  named: ReadonlyArray<string>,
  { checked }: { readonly checked: boolean },
): Promise<boolean> => {
  const chosen = patches().filter((patch) => {
    const row = rowOf(patch)
    return (
      named.length === 0 || named.includes(path.basename(patch, ".patch")) || (row !== undefined && named.includes(row))
    )
  })
  const folder = scratchCopy()
  const failures: Array<string> = []
  const print = (wrong: boolean, what: string, printed: ReadonlyArray<string> = []) => {
    if (wrong) failures.push(what)
    console.log([`${wrong ? "! " : "  "}${what}`, ...printed.map((line) => `      ${line}`)].join("\n"))
  }
  const sound = new Map<string, boolean>()
  const isSound = async (row: string) => {
    if (!checked) return true
    const known = sound.get(row)
    if (known !== undefined) return known
    bundle(folder)
    const { verdict, printed } = await runRow(folder, row)
    if (verdict !== "green") print(true, `${row}: fails without a patch`, printed)
    sound.set(row, verdict === "green")
    return verdict === "green"
  }
  for (const patch of chosen) {
    const row = rowOf(patch)
    if (row === undefined) {
      print(true, `${patch}: there is no such row`)
      continue
    }
    if (!(await isSound(row))) continue
    const before = new Map<string, string>()
    try {
      for (const [file, text] of patched(folder, patch)) {
        before.set(file, readFileSync(path.join(folder, file), "utf8"))
        writeFileSync(path.join(folder, file), text)
      }
    } catch (error) {
      print(true, `${patch}: does not apply`, [String(error)])
      continue
    }
    const start = Date.now()
    bundle(folder)
    const { verdict, printed } = await runRow(folder, row)
    for (const [file, text] of before) writeFileSync(path.join(folder, file), text)
    const seconds = Math.round((Date.now() - start) / 1000)
    const outcome = { red: "the row fails", green: "THE ROW STAYS GREEN", broken: "THE ROW COULD NOT JUDGE" }[verdict]
    print(verdict !== "red", `${patch}: ${outcome} (${seconds} s)`, printed)
  }
  console.log(`${chosen.length} patches, ${failures.length} failures${failures.map((line) => `\n  ${line}`).join("")}`)
  return chosen.length > 0 && failures.length === 0
}
