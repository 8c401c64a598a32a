/** The sign-in of a program with the SDK, over a `fetch` that the test answers. */
import { ApiError, login } from "@agent-identity/sdk"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type Answer, answering, json, problem } from "./Answers.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }))
afterEach(() => void vi.useRealTimers())

describe("Sign-in of a program", () => {
  const started: Answer = () =>
    Response.json({
      device_code: "dev",
      user_code: "BBBB-CCCC",
      verification_uri_complete: "https://a/b",
      expires_at: new Date(Date.now() + 90_000).toISOString(),
      interval_seconds: 5,
    })
  const pending = problem(400, "authorization_pending", "wait")
  const run = async (given: object, ...answers: ReadonlyArray<Answer>) => {
    const { seen, fetch } = answering(started, ...answers)
    const codes: Array<unknown> = []
    const outcome = login({
      fetch,
      baseUrl: "https://api.example",
      name: "desk",
      onCode: (code) => codes.push(code),
      ...given,
    }).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(180_000)
    return { outcome: await outcome, seen, codes }
  }

  it("polls at the interval of the service, five seconds slower when it asks, and returns the key", async () => {
    const granted = { key: "svc_admin_x" }
    const { outcome, seen, codes } = await run(
      { scopes: ["mail:read"], expiresInDays: 7 },
      pending,
      problem(400, "slow_down", "wait"),
      pending,
      json(granted),
    )
    expect(outcome).toEqual(granted)
    expect(codes).toEqual([{ url: "https://a/b", code: "BBBB-CCCC" }])
    expect(seen.map(({ at }) => at)).toEqual([0, 5_000, 10_000, 20_000, 30_000])
    expect(seen.map(({ url, body }) => [new URL(url).pathname, JSON.parse(body!)])).toEqual([
      ["/api/auth/device", { name: "desk", scopes: ["mail:read"], expires_in_days: 7 }],
      ...Array(4).fill(["/api/auth/device/token", { device_code: "dev" }]),
    ])
  })

  it("polls more slowly while the service is not reached or busy, until the code has expired", async () => {
    const lost: Answer = () => Promise.reject(new TypeError("fetch failed"))
    const back = await run({}, lost, problem(503, "unavailable", "wait"), pending, json({ key: "svc_admin_x" }))
    expect(back.outcome).toEqual({ key: "svc_admin_x" })
    expect(back.seen.map(({ at }) => at)).toEqual([0, 5_000, 15_000, 35_000, 55_000])
    const gone = await run({}, lost)
    expect(gone.outcome).toMatchObject({ message: expect.stringContaining("is unreachable") })
    expect(gone.seen.map(({ at }) => at)).toEqual([0, 5_000, 15_000, 35_000, 75_000, 135_000])
  })

  it("fails if it is denied or refused, or when it is aborted", async () => {
    const denied = await run({}, pending, problem(400, "device_code_denied", "stop"))
    expect(denied.outcome).toMatchObject({ code: "device_code_denied" })
    expect(denied.outcome).toBeInstanceOf(ApiError)
    expect(JSON.parse(denied.seen[0]!.body!)).toEqual({ name: "desk" })
    const refused = await run({}, problem(500, "internal", "stop"))
    expect([refused.outcome, refused.seen.length]).toMatchObject([{ code: "internal" }, 2])
    const abort = new AbortController()
    setTimeout(() => abort.abort(new Error("enough")), 7_000)
    const aborted = await run({ signal: abort.signal }, pending)
    expect([aborted.outcome, aborted.seen.length]).toEqual([new Error("enough"), 2])
  })
})
