import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const start = async (name = "laptop") =>
  (await call(service.base, "POST", "/api/auth/device", { body: { name, client: "svc 0.1" } })).body
const poll = (device_code: string) => call(service.base, "POST", "/api/auth/device/token", { body: { device_code } })
const decide = (code: string, verb: "approve" | "deny", token = session) =>
  call(service.base, "POST", `/api/auth/device/${code}/${verb}`, { token })
const view = (code: string) => call(service.base, "GET", `/api/auth/device/${code}`, { token: session })

describe("device login", () => {
  it("goes from start over approval to a key that works", async () => {
    const started = await start()
    expect(started).toMatchObject({ interval_seconds: 5, verification_uri: `${service.base}/auth/device` })
    expect(started.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    expect(started.verification_uri_complete).toContain(started.user_code)
    const pending = await poll(started.device_code)
    expect([pending.status, pending.body.code]).toEqual([400, "authorization_pending"])
    const lower = started.user_code.toLowerCase().replace("-", "")
    expect((await view(lower)).body).toMatchObject({
      user_code: started.user_code,
      name: "laptop",
      client: "svc 0.1",
      status: "pending",
    })
    expect((await decide(lower, "approve")).status).toBe(204)
    expect((await view(lower)).body.status).toBe("approved")
    const { status, body } = await poll(started.device_code)
    expect(status).toBe(200)
    expect(body).toMatchObject({ api_key: { name: "laptop", scope: "org" } })
    const who = await call(service.base, "GET", "/api/auth/whoami", { token: body.key })
    expect(who.body.caller).toMatchObject({ kind: "admin_key", key_name: "laptop" })
    expect((await poll(started.device_code)).body.code).toBe("device_code_used")
    expect((await view(lower)).body.status).toBe("collected")
  })

  it("is told to slow down, five seconds more each time", async () => {
    const started = await start()
    expect((await poll(started.device_code)).body.code).toBe("authorization_pending")
    const fast = await poll(started.device_code)
    expect(fast.body).toMatchObject({ code: "slow_down", retry_after_seconds: 10 })
    expect((await poll(started.device_code)).body).toMatchObject({ code: "slow_down", retry_after_seconds: 15 })
  })

  it("is denied, and a decision is made once", async () => {
    const started = await start()
    expect((await decide(started.user_code, "deny")).status).toBe(204)
    expect((await poll(started.device_code)).body.code).toBe("device_code_denied")
    const late = await decide(started.user_code, "approve")
    expect([late.status, late.body.code]).toEqual([409, "device_authorization_settled"])
  })

  it("expires", async () => {
    const started = await start()
    await service.query((sql) => sql`update device_authorization set expires_at = now() - interval '1 second'`)
    expect((await poll(started.device_code)).body.code).toBe("device_code_expired")
    expect((await view(started.user_code)).body.status).toBe("expired")
    expect((await decide(started.user_code, "approve")).body.code).toBe("device_authorization_settled")
  })

  it("knows no code that it did not give", async () => {
    expect((await poll("nonsense")).body.code).toBe("device_code_invalid")
    for (const code of ["BBBB-BBBB", "nonsense", "%00"]) {
      expect((await view(code)).status).toBe(code === "%00" ? 400 : 404)
    }
    expect((await decide("BBBB-BBBB", "deny")).status).toBe(404)
  })

  it("is not an Identity Key's to confirm", async () => {
    const started = await start()
    const { secrets } = await makeIdentity(service.base, session)
    expect((await decide(started.user_code, "approve", secrets.identity_key)).body.code).toBe("admin_required")
  })

  it("gives its key to one of the polls that wait while it is approved", async () => {
    for (let round = 0; round < 5; round++) {
      const started = await start()
      const polls = Array.from({ length: 20 }, () => poll(started.device_code))
      expect((await decide(started.user_code, "approve")).status).toBe(204)
      const answers = [...(await Promise.all(polls)), await poll(started.device_code)]
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(answers.filter(({ status }) => status >= 500)).toHaveLength(0)
    }
  })

  it("gives its key to exactly one of fifty polls, and one decision of two", async () => {
    const started = await start()
    const decisions = await Promise.all([decide(started.user_code, "approve"), decide(started.user_code, "deny")])
    expect(decisions.map(({ status }) => status).toSorted()).toEqual([204, 409])
    const polls = await Promise.all(Array.from({ length: 50 }, () => poll(started.device_code)))
    const approved = decisions[0]!.status === 204
    expect(polls.filter(({ status }) => status === 200)).toHaveLength(approved ? 1 : 0)
    expect(new Set(polls.flatMap(({ body }) => (body.code === undefined ? [] : [body.code])))).toEqual(
      new Set([approved ? "device_code_used" : "device_code_denied"]),
    )
  })
})
