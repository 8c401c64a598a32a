/** Database errors that are reported as `unavailable`, and those that are defects. */
import { isTransient, orUnavailable } from "@svc/cluster/store/Database"
import { Context, Effect, Metric } from "effect"
import { SqlError } from "effect/sql"
import { describe, expect, it } from "vitest"

/** Returns an error as the driver reports it if it has no name for it. */
const failed = (code: string, text: string) =>
  new SqlError.SqlError({
    reason: new SqlError.UnknownError({ cause: Object.assign(new Error(text), { code }), message: "Failed" }),
  })

describe("a failure of the database", () => {
  it.each([
    ["53100", "could not extend file: No space left on device"],
    ["53200", "out of memory"],
    ["57P01", "the administrator ended the connection"],
    ["58030", "could not write to file"],
  ])("%s passes: %s", (code, text) => expect(isTransient(failed(code, text))).toBe(true))

  it.each([
    ["22P02", "invalid input syntax for type uuid"],
    ["XX000", "cache lookup failed"],
  ])("%s does not: %s", (code, text) => expect(isTransient(failed(code, text))).toBe(false))

  it("is counted by its reason, unlike other errors", async () => {
    const counted = (reason: string) =>
      Metric.snapshotUnsafe(Context.empty())
        .filter(({ id, attributes }) => id === "svc_db_failures_total" && attributes?.["reason"] === reason)
        .reduce((sum, { state }) => sum + (state as { count: number }).count, 0)
    const all = () => ["deadlock", "server", "deadline", "connection"].map(counted)
    const because = (reason: SqlError.SqlError["reason"]) =>
      Effect.runPromiseExit(orUnavailable(Effect.fail(new SqlError.SqlError({ reason }))))
    const failures = async () => {
      await because(new SqlError.DeadlockError({ cause: new Error("deadlock detected") }))
      await because(failed("53100", "could not extend file").reason)
      await because(failed("22P02", "invalid input syntax").reason)
    }
    // Earlier test files may have incremented the counters, so the test compares with their values after a first round.
    await failures()
    const [deadlock = 0, server = 0, ...others] = all()
    await failures()
    expect(all()).toEqual([deadlock + 1, server + 1, ...others])
  })
})
