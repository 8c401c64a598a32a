/** Which failures of the database are told as "come again", and which are a defect. */
import { isTransient, orUnavailable } from "@svc/cluster/store/Database"
import { Context, Effect, Metric } from "effect"
import { SqlError } from "effect/sql"
import { describe, expect, it } from "vitest"

/** As the driver says what it has no name for. */
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
    // The first ones begin the counts: what stands under their names may be of a file of tests before.
    await failures()
    const [deadlock = 0, server = 0, ...others] = all()
    await failures()
    expect(all()).toEqual([deadlock + 1, server + 1, ...others])
  })
})
