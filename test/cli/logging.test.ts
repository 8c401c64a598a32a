import { execFileSync } from "node:child_process"
import * as path from "node:path"
import { entryOf } from "@svc/api/RequestLog"
import * as Logging from "@svc/cli/Logging"
import { requestLine, wrongLevel } from "@svc/cli/Logging"
import { render } from "@svc/api/problems/Render"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Cause, Effect, References } from "effect"
import { HttpServerResponse } from "effect/http"
import { describe, expect, it, vi } from "vitest"

const empty = (status: number) => HttpServerResponse.empty({ status })

describe("the log line of a request", () => {
  const request = {
    method: "GET",
    url: "/auth/magic-link?token=secret",
    headers: { authorization: "Bearer svc_admin_x" },
  }

  it("contains route, result and kind of credential, and no secret", () => {
    const page = entryOf(request, undefined, empty(200), performance.now(), "req_1")
    expect(page).toMatchObject({ method: "GET", route: "/auth/magic-link", status: 200, credential: "admin_key" })
    expect(JSON.stringify(page)).not.toMatch(/secret|svc_admin_x/)
    expect(entryOf(request, "/api/keys/:id", empty(404), performance.now(), "req_1").route).toBe("/api/keys/:id")
    expect(entryOf({ ...request, headers: {} }, undefined, empty(200), 0, "r").credential).toBeNull()
  })

  it("contains the code of the returned problem, regardless of added headers", () => {
    const problem = new Unavailable({ detail: "The database did not answer in time.", retry_after_seconds: 1 })
    const response = render({ baseUrl: "http://localhost" }, "req_1", problem)
    const sent = HttpServerResponse.setHeaders(response, { "request-id": "req_1" })
    expect(entryOf(request, "/api/keys", sent, 0, "req_1")).toMatchObject({ status: 503, problem: "unavailable" })
    expect(entryOf(request, "/api/keys", empty(503), 0, "req_1").problem).toBeNull()
    expect(entryOf(request, "/api/keys", empty(200), 0, "req_1").problem).toBeNull()
  })

  it("is written at level `info` and below, and an unknown level is rejected by name", () => {
    expect(requestLine("Info")).toBeTypeOf("function")
    expect(requestLine("Warn")).toBeUndefined()
    expect(wrongLevel("loud")).toContain('SVC_LOG_LEVEL is "loud"')
    for (const level of ["debug", "WARN", "warning", "", undefined]) expect(wrongLevel(level), level).toBeUndefined()
  })
})

describe("a log line", () => {
  it("contains no secret in its message, annotations or error", async () => {
    const secret = "svc_admin_abcdefghijklmnop"
    let written = ""
    const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      written += String(text)
      return true
    })
    const entry = Effect.logError(`used ${secret}`, Cause.fail(new Error(`refused ${secret}`))).pipe(
      Effect.annotateLogs({ note: secret }),
      Effect.provide(Logging.layer),
    )
    try {
      await Effect.runPromise(entry)
      await expect.poll(() => written).toContain("refused")
    } finally {
      spy.mockRestore()
    }
    expect(JSON.parse(written)).toMatchObject({ level: "ERROR", error: expect.stringContaining("refused svc_admin_") })
    expect(written).not.toContain("abcdefghijklmnop")
  })

  it("is left out for what the cluster library says at every start or repeats", async () => {
    const lines: Array<Record<string, unknown>> = []
    const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      for (const line of String(text).trim().split("\n")) lines.push(JSON.parse(line))
      return true
    })
    const log = (level: "Info" | "Debug") =>
      Effect.gen(function* () {
        yield* Effect.logWarning("No healthy runners available")
        yield* Effect.logWarning("Shard lock storage is still unhealthy", "again")
        yield* Effect.annotateLogs(Effect.logInfo("detail"), { package: "@effect/cluster" })
        yield* Effect.annotateLogs(Effect.logWarning("trouble"), { package: "@effect/cluster" })
        yield* Effect.annotateLogs(Effect.logInfo("ours"), { package: "@svc/cluster" })
        yield* Effect.logInfo(`end of ${level}`)
      }).pipe(Effect.provideService(References.MinimumLogLevel, level), Effect.provide(Logging.layer))
    try {
      await Effect.runPromise(Effect.andThen(log("Info"), log("Debug")))
      await expect.poll(() => lines.at(-1)?.["message"]).toBe("end of Debug")
    } finally {
      spy.mockRestore()
    }
    expect(lines.map(({ level, message }) => `${String(level)} ${String(message)}`)).toEqual([
      "WARN trouble",
      "INFO ours",
      "INFO end of Info",
      "DEBUG Shard lock storage is still unhealthy,again",
      "DEBUG detail",
      "WARN trouble",
      "INFO ours",
      "INFO end of Debug",
    ])
  })
})

describe("the log of a process", () => {
  it("is complete when it exits", () => {
    const logging = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "Logging.ts")
    const program = `
      const { requestLine } = await import(${JSON.stringify(logging)})
      requestLine("Info")({ route: "/api/keys" })
      process.exit(0)`
    const log = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
      encoding: "utf8",
      env: { ...process.env, SVC_LOG_FORMAT: "json" },
    })
    expect(JSON.parse(log)).toMatchObject({ message: "request", route: "/api/keys" })
  })
})
