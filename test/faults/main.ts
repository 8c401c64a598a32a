/**
 * `npm run faults [row ...]` injects faults into the service and prints what was acknowledged and what was lost. `npm
 * run faults -- --mutants [row ...]` removes the protection that each row tests, and fails if the row still passes.
 */
import { perform, run } from "../harness/Report.ts"
import { judgeRows } from "./Mutants.ts"
import { rows } from "./Rows.ts"

const words = process.argv.slice(2)
if (words.includes("--mutants")) {
  const named = words.filter((word) => !word.startsWith("--"))
  process.exit((await judgeRows(named, { checked: !words.includes("--no-check") })) ? 0 : 1)
}
const only = words.indexOf("--only")
// An exact name selects a row; a prefix selects all rows that begin with it.
if (only >= 0) process.exit((await perform({ [words[only + 1]!]: rows[words[only + 1]!]! }, [])) ? 0 : 1)
await run(rows)
