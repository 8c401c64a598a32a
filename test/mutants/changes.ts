/**
 * Makes every small change of source files, one at a time, and lists those that no test notices: `npm run changes --
 * packages/domain/src/Ids.ts [FILE ...] [-- test/domain/ids.test.ts ...]`. Without test files, it
 * runs those that import one of the modules. One process tries many changes, so a file takes about a minute. `--sql` leaves
 * out parts of SQL statements only.
 *
 * If no test notices a change, a promise has no test, the code is not needed, or the change has no effect. Only a reader can
 * tell which.
 */
import { spawn } from "node:child_process"
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { scratchCopy } from "../harness/ScratchCopy.ts"
import { type Change, changesOf, planted } from "./SmallChanges.ts"
import { root } from "./Mutant.ts"

const onlySql = process.argv.includes("--sql")
const words = process.argv.slice(2).filter((word) => word !== "--sql")
const divider = words.indexOf("--")
const sources = globSync(divider < 0 ? words : words.slice(0, divider), { cwd: root })
if (sources.length === 0) {
  console.error("Name the source files to change: npm run changes -- packages/domain/src/Ids.ts")
  process.exit(2)
}

/** The maximum number of processes that try the changes of one round. */
const mostProcesses = 12

/** If more test files import a module, most of them do not test it, and all of them would take many minutes. */
const mostTests = 8

/** Returns the test files that import one of the modules. */
const importing = () => {
  const modules = sources.map((file) => file.replace(/^packages\/([^/]+)\/src\/(.*)\.tsx?$/, '"@svc/$1/$2"'))
  const imports = (file: string) => modules.some((name) => readFileSync(path.join(root, file), "utf8").includes(name))
  return globSync("test/**/*.test.ts", { cwd: root }).filter((file) => !file.includes("node_modules") && imports(file))
}
const tests = divider < 0 ? importing() : words.slice(divider + 1)
if (tests.length === 0 || (divider < 0 && tests.length > mostTests)) {
  console.error(
    `${tests.length} test files import these modules. Name those that should notice: npm run changes -- FILE -- TEST`,
  )
  process.exit(2)
}

const copy = scratchCopy()
const results = mkdtempSync(path.join(copy, "changes-"))
writeFileSync(
  path.join(copy, "changes.config.ts"),
  `import { mergeConfig } from "vitest/config"
import base from "./vitest.config.ts"
// A changed component may throw outside of a test, which must not end the run.
export default mergeConfig(base, {
  test: { runner: "./test/mutants/ChangeRunner.ts", testTimeout: 3_600_000, dangerouslyIgnoreUnhandledErrors: true },
})
`,
)

/** Runs the tests with the changes of this round, and returns whether all files could be loaded. */
const run = () =>
  new Promise<boolean>((resolve) => {
    const child = spawn("vitest", ["run", "--config", "changes.config.ts", "--maxWorkers=2", ...tests], {
      cwd: copy,
      env: {
        ...process.env,
        PATH: `${path.join(root, "node_modules", ".bin")}${path.delimiter}${process.env["PATH"]}`,
        SVC_CHANGES: results,
      },
      stdio: ["ignore", "pipe", "inherit"],
    })
    let output = ""
    child.stdout.on("data", (chunk: Buffer) => (output += chunk))
    child.on("close", (code) => {
      if (code !== 0) console.error(output)
      resolve(code === 0)
    })
  })

interface Made {
  readonly file: string
  readonly change: Change
}
const made: Array<Made> = []
const texts = new Map(sources.map((file) => [file, readFileSync(path.join(root, file), "utf8")]))
const isChosen = ({ what }: Change) => !onlySql || what.startsWith('without "')
let open = new Map(
  [...texts].map(([file, text]) => [file, changesOf(text, file.endsWith(".tsx") ? "tsx" : "ts").filter(isChosen)]),
)
while (open.size > 0) {
  const later: typeof open = new Map()
  for (const [file, text] of texts) {
    const { text: changed, taken, others } = planted(text, open.get(file) ?? [], made.length)
    writeFileSync(path.join(copy, file), changed)
    made.push(...taken.map((change) => ({ file, change })))
    if (others.length > 0) later.set(file, others)
  }
  for (let n = 1; ; n++) {
    if (!(await run())) {
      console.error("The tests cannot be loaded.")
      process.exit(2)
    }
    const broken = readdirSync(results).filter((name) => name.startsWith("broken-"))
    if (broken.length === 0 || n === mostProcesses) break
    for (const name of broken) rmSync(path.join(results, name))
  }
  open = later
}

const found = new Set(readdirSync(results))
const lines = made.flatMap(({ file, change }, at) => {
  if (found.has(`noticed-${at}`)) return []
  const source = texts.get(file)!.split("\n")[change.line - 1]!.trim()
  return [{ file, ...change, source, isExecuted: found.has(`executed-${at}`) }]
})
for (const { file, line, what, source, isExecuted } of lines.toSorted((one, other) => one.line - other.line)) {
  console.log(`${file}:${line}: ${isExecuted ? "not noticed" : "not executed"}: ${what} | ${source.slice(0, 140)}`)
}
for (const name of found)
  if (/^(?:unused|broken)-/.test(name)) console.log(readFileSync(path.join(results, name), "utf8"))
const executed = made.filter((_, at) => found.has(`executed-${at}`)).length
console.log(`${made.length - lines.length} of ${made.length} changes noticed; ${made.length - executed} not executed`)
