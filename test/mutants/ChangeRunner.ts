/**
 * Runs each test again for each change that it executes ({@link file://./SmallChanges.ts}), until a test notices the
 * change. Does not use a test that fails when it runs twice in one process. A change can break what all tests of a file
 * share: the next process tries the rest.
 */
import { existsSync, writeFileSync } from "node:fs"
import { performance } from "node:perf_hooks"
import * as path from "node:path"
import { type RunnerTestCase, TestRunner } from "vitest"
import { hook } from "./SmallChanges.ts"

/**
 * Folder of the results: files `executed-<number>`, `noticed-<number>`, `passed-<test>-<number>`, `unused-<test>`, and
 * `broken-<file>` with the change that broke what the tests of a file share.
 */
const folder = process.env["SVC_CHANGES"] ?? ""
/** Longer tests are not used, because a test runs again for up to hundreds of changes. */
const longestMillis = Number(process.env["SVC_CHANGES_MILLIS"] ?? 5_000)
/** The maximum time for all runs of one test. */
const budgetMillis = 120_000
/** The maximum number of times that one run of a test reaches the change. A change that exceeds it has made a loop endless. */
const mostAsked = 200_000

let active: number | undefined
let asked = 0
let executed: Set<number> | undefined

const isActive = (change: number): boolean => {
  executed?.add(change)
  if (change !== active) return false
  if (++asked > mostAsked) throw new Error("A loop does not end.")
  return true
}
Object.assign(globalThis, { [hook]: isActive })

/** Runs a test, and returns whether it passes in time. Interrupts it otherwise, so that it does not disturb the next run. */
const passes = async (test: RunnerTestCase, run: () => unknown, millis: number): Promise<boolean> => {
  const time = new AbortController()
  // An interrupted test waits for its finalizers in a function that it registers.
  const finalizers: Array<() => unknown> = []
  const onTestFinished = (finalizer: () => unknown) => void finalizers.push(finalizer)
  Object.assign(test.context, { signal: time.signal, onTestFinished })
  const timer = setTimeout(() => time.abort(new Error("The test takes too long.")), millis)
  try {
    return await Promise.race([
      Promise.resolve(run()).then(() => true),
      new Promise<boolean>((resolve) => time.signal.addEventListener("abort", () => resolve(false))),
    ])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
    for (const finalizer of finalizers) await finalizer()
  }
}

const mark = (what: string, content = "") => writeFileSync(path.join(folder, what), content)
const has = (what: string) => existsSync(path.join(folder, what))
const isNoticed = (change: number) => has(`noticed-${change}`)

export default class ChangeRunner extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test)
    const name = `${test.file.name}: ${test.name}`
    const unused = (why: string) => mark(`unused-${test.id}`, `${name} (${why})`)
    if (has(`broken-${test.file.id}`)) return
    executed = new Set()
    const changes = executed
    const begun = performance.now()
    try {
      await run()
    } catch {
      // The repeated runs of earlier tests may have changed what this test depends on.
      return unused("does not pass after the tests before it")
    } finally {
      executed = undefined
    }
    const took = performance.now() - begun
    for (const change of changes) mark(`executed-${change}`)
    const open = [...changes].filter((change) => !isNoticed(change) && !has(`passed-${test.id}-${change}`))
    if (open.length === 0) return
    if (took > longestMillis) return unused(`takes ${Math.round(took)} ms`)
    const limit = took * 6 + 1_500
    const isSound = () => passes(test, run, limit * 2)
    if (!(await isSound())) return unused("does not pass twice")
    for (const change of open) {
      if (isNoticed(change)) continue
      if (performance.now() - begun > budgetMillis)
        return unused(`tried only some of ${open.length} changes in its time`)
      asked = 0
      active = change
      const hasPassed = await passes(test, run, limit)
      active = undefined
      if (hasPassed) mark(`passed-${test.id}-${change}`)
      else mark(`noticed-${change}`, name)
      // The change may have broken what later runs need.
      if (!hasPassed && !(await isSound())) return mark(`broken-${test.file.id}`, `${name} after change ${change}`)
    }
  }
}
