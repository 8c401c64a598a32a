/**
 * `npm test`: runs the checks and the tests in parallel. `npm run test:quick` omits browsers, other programs, kills and
 * long waits. Arguments after `--` go to Vitest: `npm test -- test/webhooks`.
 */
import { spawn } from "node:child_process"
import * as path from "node:path"
import { check } from "./check.ts"

const [first, ...others] = process.argv.slice(2)
const words = first === undefined || first === "quick" ? others : [first, ...others]
if (first === "quick") process.env["SVC_TESTS"] = "quick"

const vitest = path.join(import.meta.dirname, "..", "node_modules", "vitest", "vitest.mjs")
const tests = new Promise<boolean>((resolve) => {
  const child = spawn(process.execPath, [vitest, "run", ...words], { stdio: "inherit" })
  child.on("close", (code) => resolve(code === 0))
})
const [sound, passed] = await Promise.all([check(), tests])
if (!sound) console.error("\nThe checks failed: see above.")
process.exit(sound && passed ? 0 : 1)
