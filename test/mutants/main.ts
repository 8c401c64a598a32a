/**
 * Plants recorded bugs, runs the tests that should notice each, and prints the share that was noticed.
 * `npm run mutants [-- NAME ...]` runs those whose name or file contains one of the words, or all. Ends with 1 if the share is
 * below the goal.
 *
 * Most bugs are planted in memory ({@link file://./InMemory.ts}). A bug that is not noticed there, or whose tests start
 * processes, is planted in a copy of the checkout.
 */
import { spawn } from "node:child_process"
import { cpSync, globSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { startsProcesses } from "../harness/Order.ts"
import { scratchCopy } from "../harness/ScratchCopy.ts"
import { type InMemory, judgeInMemory } from "./InMemory.ts"
import { type Mutant, pathOf, planted, root, testsOf } from "./Mutant.ts"
import { mutants } from "./Mutants.ts"

/** Share of the planted bugs that the tests have to notice. */
const goal = 0.95
/** A run in the copy that takes longer has noticed the bug: the tests hang. */
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
const filesOf = (mutant: Mutant) =>
  testsOf(mutant).flatMap((test) => (test.endsWith("/") ? globSync(`${test}**/*.test.ts`, { cwd: root }) : [test]))

const missed = new Set(chosen.map(([name]) => name))
const report = (name: string, by: string | undefined) => {
  if (by !== undefined) missed.delete(name)
  console.log(`${by === undefined ? "NOT NOTICED" : "noticed    "} ${name} ${by ?? mutants[name]!.bug}`)
}

const inMemory = chosen.flatMap(([name, mutant]): ReadonlyArray<InMemory> => {
  const files = filesOf(mutant).filter((file) => !startsProcesses(file))
  return files.length === 0 ? [] : [{ name, mutant, files }]
})
/** Tests fail for other reasons too: those that fail without a bug are no judges. */
const sound = { name: "", files: [...new Set(inMemory.flatMap(({ files }) => files))] }
await judgeInMemory([sound, ...inMemory], (bug, by) => {
  if (bug === sound && by !== undefined) {
    console.error(`A test fails without a planted bug: ${by}`)
    process.exit(2)
  }
  if (bug !== sound && by !== undefined) report(bug.name, by)
})

const folder = missed.size === 0 ? "" : scratchCopy()
for (const name of Array.from(missed)) {
  const mutant = mutants[name]!
  const file = path.join(folder, pathOf(mutant))
  writeFileSync(file, planted(mutant, folder))
  const { failed, output } = await run(folder, testsOf(mutant))
  cpSync(path.join(root, pathOf(mutant)), file)
  report(name, failed ? (/^ FAIL +(.*)$/m.exec(output)?.[1] ?? "does not end") : undefined)
}
const share = (chosen.length - missed.size) / chosen.length
console.log(`${chosen.length - missed.size} of ${chosen.length} noticed: ${share.toFixed(3)} (goal ${goal})`)
process.exit(share < goal ? 1 : 0)
