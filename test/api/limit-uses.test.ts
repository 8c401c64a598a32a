/** `GET /api/limits`: every limit, its use, and the time of its reset. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
beforeAll(async () => {
  service = await startService({
    env: {
      SVC_LIMIT_CALLS: "600",
      SVC_LIMIT_IDENTITY_CREATE: "10",
      SVC_IDENTITY_QUOTA: "4",
      SVC_LIMIT_MAIL_HOURLY: "7",
      SVC_MAILBOX_BYTES: "90000",
    },
  })
})
afterAll(() => service.stop())

interface Use {
  readonly name: string
  readonly identity: string | null
  readonly used: number
  readonly limit: number
  readonly window: string | null
  readonly resets_at: string | null
}

const read = async (token: string, query = "") => {
  const { body, status } = await call<{ limits: ReadonlyArray<Use> }>(service.base, "GET", `/api/limits${query}`, {
    token,
  })
  expect(status).toBe(200)
  return body.limits
}
const of = (limits: ReadonlyArray<Use>, name: string, identity: string | null = null) =>
  limits.find((one) => one.name === name && one.identity === identity)
const within = (at: string | null, seconds: number) => {
  const remaining = Date.parse(at!) - Date.now()
  expect(remaining).toBeGreaterThan(-5_000)
  expect(remaining).toBeLessThanOrEqual(seconds * 1000 + 1_000)
}

describe("Limits of an Org", () => {
  it("report use, quota and reset", async () => {
    const { session, email } = await signUp(service.base)
    const fresh = await read(session)
    expect(fresh.map(({ name }) => name)).toEqual([
      "calls",
      "identity_create",
      "handle_check",
      "streams_org",
      "identity_quota",
      "tunnel_transfer",
    ])
    expect(of(fresh, "identity_quota")).toMatchObject({ used: 0, limit: 4, window: null, resets_at: null })
    expect(of(fresh, "identity_create")).toMatchObject({ used: 0, limit: 10, window: "minute" })
    within(of(fresh, "calls")!.resets_at, 60)

    const ada = await makeIdentity(service.base, session)
    await call(service.base, "GET", "/api/handles/free-name", { token: session })
    const sent = await call(service.base, "POST", `/api/identities/${ada.handle}/messages/send`, {
      token: session,
      body: { to: [email], subject: "hello", text: "hello" },
    })
    expect(sent.status).toBe(202)
    await send(service.smtpPort, { from: "g@example.org", to: `${ada.handle}@mail.localhost`, text: "x".repeat(5000) })
    await service.query(
      (sql) => sql`
        insert into tunnel_transfer (org_id, day, bytes)
        select org_id, (now() at time zone 'utc')::date, 123456 from identity where handle = ${ada.handle}`,
    )
    const used = await eventually(
      () => read(session),
      (limits) => (of(limits, "mailbox_bytes", ada.handle)?.used ?? 0) > 5_000,
    )
    expect(of(used, "identity_quota")!.used).toBe(1)
    // If a minute ends in between, all requests are repeated.
    const calls = async () => {
      for (let made = 0; made < 3; made++) await read(session)
      return of(await read(session), "calls")!.used
    }
    expect(await eventually(calls, (made) => made > 3)).toBeGreaterThan(3)
    expect(of(used, "tunnel_transfer")).toMatchObject({ used: 123_456, limit: 10 * 1024 ** 3, window: "day" })
    within(of(used, "tunnel_transfer")!.resets_at, 24 * 3600)
    expect(of(used, "mail_hourly", ada.handle)).toMatchObject({ used: 1, limit: 7, window: "hour" })
    within(of(used, "mail_hourly", ada.handle)!.resets_at, 3600)
    expect(of(used, "mailbox_bytes", ada.handle)).toMatchObject({ limit: 90_000, window: null, resets_at: null })
  })

  it("warn once when four fifths of the Identities are created, including deleted ones", async () => {
    const { session } = await signUp(service.base)
    const warnings = async () =>
      (await call(service.base, "GET", "/api/events?type=limit.near", { token: session })).body.events
    const [first] = [await makeIdentity(service.base, session)]
    await call(service.base, "DELETE", `/api/identities/${first!.handle}`, { token: session })
    for (let more = 0; more < 2; more++) await makeIdentity(service.base, session)
    expect(await warnings()).toEqual([])
    await makeIdentity(service.base, session)
    const refused = await call(service.base, "POST", "/api/identities", {
      token: session,
      body: { handle: "one-more" },
    })
    expect(refused.body.code).toBe("identity_quota_exhausted")
    const raised = await warnings()
    expect(raised.map(({ data }: any) => data)).toEqual([{ limit: "identity_quota", used: 4, quota: 4, window: null }])
    expect(raised[0]).toMatchObject({ identity_id: null, handle: null })
  })

  it("equal the rate limit headers", async () => {
    const { session } = await signUp(service.base)
    await call(service.base, "GET", "/api/auth/whoami", { token: session })
    // A minute may end between both responses.
    await eventually(
      () => call(service.base, "GET", "/api/limits", { token: session }),
      ({ headers, body }) =>
        of(body.limits, "calls")!.used === 600 - Number(/"calls";r=(\d+)/.exec(headers.get("ratelimit")!)![1]),
    )
  })

  it("of an Identity are those that apply to it, and an Identity Key sees no others", async () => {
    const { session } = await signUp(service.base)
    const ada = await makeIdentity(service.base, session)
    const bob = await makeIdentity(service.base, session)
    const names = ["calls", "streams_org", "tunnel_transfer", "mail_hourly", "mailbox_bytes"]
    const own = await read(ada.secrets.identity_key)
    expect(own.map(({ name }) => name)).toEqual(names)
    expect(new Set(own.map(({ identity }) => identity))).toEqual(new Set([null, ada.handle]))
    expect((await read(session, `?identity=${bob.handle}`)).map(({ identity }) => identity)).toContain(bob.handle)
    const path = `/api/limits?identity=${bob.handle}`
    const refused = await call(service.base, "GET", path, { token: ada.secrets.identity_key })
    expect([403, 404]).toContain(refused.status)
    const stranger = await signUp(service.base)
    expect((await call(service.base, "GET", path, { token: stranger.session })).status).toBe(404)
    expect((await read(stranger.session)).filter(({ identity }) => identity !== null)).toEqual([])
  })
})
