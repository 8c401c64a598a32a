/**
 * Plants bugs one at a time in a copy of the checkout, runs the tests that should notice each, and prints the share that
 * was noticed. `npm run mutants [-- NAME ...]` runs those whose name or file contains one of the words, or all. Ends with
 * 1 if the share is below the goal.
 */
import { spawn } from "node:child_process"
import { cpSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { scratchCopy } from "../harness/ScratchCopy.ts"
import { type Mutant, pathOf, planted, root, testsOf } from "./Mutant.ts"
import { mutants } from "./Mutants.ts"

/** Share of the planted bugs that the tests have to notice. */
const goal = 0.95
/** A run that takes longer has noticed the bug: the tests hang. */
const limitMillis = 240_000

/** Runs test files until the first failure. Resolves to whether one failed, and the last lines of the output. */
const run = (folder: string, files: ReadonlyArray<string>) =>
  new Promise<{ readonly failed: boolean; readonly output: string }>((resolve) => {
    const bin = path.join(root, "node_modules", ".bin")
    const child = spawn("vitest", ["run", "--bail=1", "--maxWorkers=2", ...files], {
      cwd: folder,
      env: { ...process.env, PATH: `${bin}${path.delimiter}${process.env["PATH"]}`, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk))
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMillis)
    child.on("close", (code) => {
      clearTimeout(timer)
      resolve({ failed: code !== 0, output })
    })
  })

const words = process.argv.slice(2).filter((word) => !word.startsWith("-"))
const chosen = Object.entries(mutants).filter(
  ([name, { file }]) => words.length === 0 || words.some((word) => name.includes(word) || file.includes(word)),
)
const folder = scratchCopy()

const judge = async (mutant: Mutant) => {
  const file = path.join(folder, pathOf(mutant))
  const sound = planted(mutant, folder)
  try {
    writeFileSync(file, sound)
    return await run(folder, testsOf(mutant))
  } finally {
    cpSync(path.join(root, pathOf(mutant)), file)
  }
}

/** Tests fail for other reasons too: those that fail without a bug are no judges. */
const files = [...new Set(chosen.flatMap(([, mutant]) => testsOf(mutant)))]
const without = process.argv.includes("--no-check") ? undefined : await run(folder, files)
if (without?.failed === true) {
  console.error(`${without.output}\nThe tests fail without a planted bug.`)
  process.exit(2)
}

const missed: Array<string> = []
for (const [name, mutant] of chosen) {
  const begun = Date.now()
  const { failed, output } = await judge(mutant)
  const by = /^ FAIL +(.*)$/m.exec(output)?.[1] ?? ""
  if (!failed) missed.push(name)
  const seconds = Math.round((Date.now() - begun) / 1000)
  console.log(`${failed ? "noticed    " : "NOT NOTICED"} ${name} (${seconds} s) ${failed ? by : mutant.bug}`)
}
const share = (chosen.length - missed.length) / chosen.length
console.log(`${chosen.length - missed.length} of ${chosen.length} noticed: ${share.toFixed(3)} (goal ${goal})`)
process.exit(share < goal ? 1 : 0)
