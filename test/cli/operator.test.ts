import { execFile } from "node:child_process"
import * as path from "node:path"
import { reportedError } from "@svc/cli/ReportedError"
import { sentence } from "@svc/cli/serve/OperatorErrors"
import { SettingsInvalid } from "@svc/cli/serve/Settings"
import { areShared, type Ask } from "@svc/cluster/store/Sessions"
import { Cause, Effect, Exit } from "effect"
import { describe, expect, it, vi } from "vitest"

const main = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.mjs")
const serve = (env: Record<string, string>) =>
  new Promise<{ code: unknown; text: string }>((resolve) => {
    execFile(
      process.execPath,
      [main, "serve"],
      { env: { PATH: process.env["PATH"], SVC_OPS_PORT: "0", ...env } },
      (error, out, err) => resolve({ code: error?.code ?? 0, text: `${out}${err}` }),
    )
  })

describe("an error of an operator's command", () => {
  const ended = async (effect: Effect.Effect<unknown, unknown>) => {
    const printed = vi.spyOn(process.stderr, "write").mockReturnValue(true)
    try {
      const exit = await Effect.runPromiseExit(reportedError(effect))
      return [Exit.isSuccess(exit) || Cause.squash(exit.cause), printed.mock.calls.map(([text]) => text)]
    } finally {
      printed.mockRestore()
    }
  }

  it("is printed once if it is expected, and fails the command in any case", async () => {
    const [reported, printed] = await ended(Effect.fail(new SettingsInvalid({ message: "SVC_X must be a number" })))
    expect(reported).toMatchObject({ _tag: "ReportedError" })
    expect(printed).toEqual(["svc: SVC_X must be a number\n"])
    const unexpected = new Error("a defect")
    expect(await ended(Effect.fail(unexpected))).toEqual([unexpected, []])
    expect(await ended(Effect.die(unexpected))).toEqual([unexpected, []])
    expect(await ended(Effect.void)).toEqual([true, []])
  })
})

describe("a start-up error", () => {
  it.each([
    [{ SVC_HTTP_PORT: "abc" }, /^svc: SVC_HTTP_PORT is not valid: [^\n]*\n$/],
    [{ SVC_SMTP_PORT: "70000" }, /^svc: SVC_SMTP_PORT is not valid: expected a port from [^\n]*\n$/],
    [{ DATABASE_URL: "nonsense" }, /^svc: DATABASE_URL must be a PostgreSQL address[^\n]*\n$/],
    [
      { DATABASE_URL: "postgres://a:b@127.0.0.1:1/c" },
      /^svc: The database is unreachable \(connect ECONNREFUSED[^\n]*\n$/,
    ],
  ])("is one sentence for %j", async (env, words) => {
    const { code, text } = await serve(env)
    expect(text).toMatch(words)
    expect(code).toBe(1)
  })

  it.each([
    [
      { _tag: "SqlError", reason: { _tag: "AuthenticationError", cause: new Error("no such role") } },
      /^The database rejected the login \(no such role\): correct/,
    ],
    [
      { _tag: "SqlError", reason: { _tag: "ConnectionError", message: "refused" } },
      /^The database is unreachable \(refused\): start/,
    ],
    [
      { _tag: "SqlError", reason: { _tag: "ConnectionError", cause: new Error("unsupported startup parameter: x") } },
      /^The connection pooler of DATABASE_URL does not support a parameter of the URL \(unsupported startup parameter: x\): remove/,
    ],
    [new AggregateError([new Error("a"), new SettingsInvalid({ message: "SVC_X is wrong." })]), /^SVC_X is wrong\.$/],
    [
      new Error("listen EACCES: permission denied 0.0.0.0:25"),
      /^0\.0\.0\.0:25 needs more permissions .* or set SVC_SMTP_PORT to another port\.$/,
    ],
    [
      new Error("listen EADDRNOTAVAIL: address not available 192.0.2.1:9"),
      /^192\.0\.2\.1:9 is at an address .* correct SVC_HOST, or set another port\.$/,
    ],
    [new Error("listen EADDRINUSE: address already in use [::]:25"), /^\[?::\]?:25 is in use .* SVC_SMTP_PORT/],
    [{ _tag: "SqlError", reason: { _tag: "ConstraintError" } }, undefined],
    ["text", undefined],
  ])("is one sentence for the error %j, wherever it stands in the cause", (error, words) => {
    const ports = { SVC_SMTP_PORT: 25 }
    const cycle = { _tag: "Outer", cause: undefined as unknown, errors: ["no object", error] }
    cycle.cause = cycle
    for (const cause of [Cause.fail(error), Cause.die(error), Cause.fail({ cause: error }), Cause.fail(cycle)]) {
      if (words === undefined) expect(sentence(cause, ports)).toBeUndefined()
      else expect(sentence(cause, ports)).toMatch(words)
    }
    const second = Cause.combine(Cause.fail(new Error("x")), Cause.fail(error))
    expect(sentence(second, ports)).toBe(sentence(Cause.fail(error), ports))
  })

  it("names the setting of a port that is in use", () => {
    const taken = Object.assign(new Error("listen EADDRINUSE: address already in use 127.0.0.1:8080"), {
      code: "EADDRINUSE",
    })
    const cause = Cause.fail({ _tag: "ServeError", cause: taken })
    expect(sentence(cause, { SVC_HTTP_PORT: 8080 })).toBe(
      "127.0.0.1:8080 is in use by another program: stop it, or set SVC_HTTP_PORT to another port.",
    )
    expect(sentence(Cause.die(new Error("what nobody foresaw")), {})).toBeUndefined()
  })
})

/** Backend processes of a server: connections of their own, or shared per transaction as by a pooler. */
const sessions = (): [Ask, Ask] => [() => Effect.succeed(1), () => Effect.succeed(2)]
const pooled = (): [Ask, Ask] => {
  const free = [1, 2]
  return [0, 1].map((): Ask => {
    let held: number | undefined
    return (statement) =>
      Effect.sync(() => {
        const pid = held ?? free.shift()!
        held = statement === "begin" ? pid : statement === "rollback" ? undefined : held
        if (held === undefined) free.unshift(pid)
        return pid
      })
  }) as [Ask, Ask]
}

describe("a pooler in transaction mode", () => {
  it("is distinguished from dedicated sessions", async () => {
    expect(await Effect.runPromise(areShared(...pooled()))).toBe(true)
    expect(await Effect.runPromise(areShared(...sessions()))).toBe(false)
  })
})
