/**
 * Whatever is said to a session, nothing throws, it goes on or ends, and what it held goes with it. `SVC_FUZZ_BYTES` says
 * how many bytes are fed (300,000 where it says nothing), `SVC_FUZZ_SEED` where their numbers begin.
 */
import { execFile } from "node:child_process"
import * as path from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const wanted = Number(process.env["SVC_FUZZ_BYTES"] ?? 300_000)
const seed = process.env["SVC_FUZZ_SEED"] ?? "11"

it("throws at nothing, and leaves nothing behind", { timeout: 120_000 + wanted / 5 }, async () => {
  const words = ["--expose-gc", path.join(import.meta.dirname, "Fuzz.ts"), String(wanted), seed]
  const { stdout } = await promisify(execFile)(process.execPath, words, { maxBuffer: 64 * 1024 * 1024 })
  // What went wrong within a session is in the log before it.
  const { fed, defects, longest, grown } = JSON.parse(stdout.trimEnd().split("\n").at(-1)!)
  expect(fed).toBeGreaterThanOrEqual(wanted)
  expect(defects).toBe(0)
  expect(longest).toBeLessThan(1024 * 1024)
  expect(grown).toBeLessThan(8 * 1024 * 1024)
})
