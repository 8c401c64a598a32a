/**
 * Fuzzes sessions: nothing throws, each session continues or ends, and its memory is released. `SVC_FUZZ_BYTES` sets
 * the number of bytes (default 300,000), `SVC_FUZZ_SEED` the first seed.
 */
import { execFile } from "node:child_process"
import * as path from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const wanted = Number(process.env["SVC_FUZZ_BYTES"] ?? 300_000)
const seed = process.env["SVC_FUZZ_SEED"] ?? "11"

it("an IMAP session never throws and leaks no memory on random input", { timeout: 120_000 + wanted / 5 }, async () => {
  const words = ["--expose-gc", path.join(import.meta.dirname, "Fuzz.ts"), String(wanted), seed]
  const { stdout } = await promisify(execFile)(process.execPath, words, { maxBuffer: 64 * 1024 * 1024 })
  // Errors within a session are logged before it.
  const { fed, defects, longest, grown } = JSON.parse(stdout.trimEnd().split("\n").at(-1)!)
  expect(fed).toBeGreaterThanOrEqual(wanted)
  expect(defects).toBe(0)
  expect(longest).toBeLessThan(1024 * 1024)
  expect(grown).toBeLessThan(8 * 1024 * 1024)
})
