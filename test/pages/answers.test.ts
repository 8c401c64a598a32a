/** Responses of the forms and pages around sign-in to each request, with and without a session. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let cookie: string
let session: string
let handle: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
  cookie = `svc_session=${session}`
})

interface Sent {
  readonly signedIn?: boolean
  /** Members of a form that is sent. */
  readonly form?: Readonly<Record<string, string>>
  /** The site whose page sends it. */
  readonly origin?: string
}
const page = async (path: string, { form, origin = service.base, signedIn = true }: Sent = {}) => {
  const answer = await fetch(`${service.base}${path}`, {
    redirect: "manual",
    headers: { origin, ...(signedIn ? { cookie } : {}), "accept-language": "en" },
    ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
  })
  return { status: answer.status, headers: answer.headers, html: await answer.text() }
}
const started = async (body: object = {}) => {
  const { body: login } = await call(service.base, "POST", "/api/auth/device", { body: { name: "desk", ...body } })
  return login as { user_code: string; device_code: string }
}
const statusOf = async (code: string) =>
  (await call(service.base, "GET", `/api/auth/device/${code}`, { token: session })).body.status

describe("The page of a device login", () => {
  const path = "/auth/device"

  it("asks for the code, and shows a known one to the account holder only", async () => {
    const { user_code } = await started()
    expect((await page(path)).html).toContain('name="user_code"')
    const shown = await page(`${path}?user_code=${user_code.toLowerCase()}`)
    expect([shown.status, shown.html.includes('value="approve"'), shown.html.includes("desk")]).toEqual([
      200,
      true,
      true,
    ])
    const anonymous = await page(`${path}?user_code=${user_code}`, { signedIn: false })
    expect([anonymous.html.includes('name="email"'), anonymous.html.includes("desk")]).toEqual([true, false])
    const texts = await Promise.all(
      ["BBBB-BBBB", "nonsense"].map(async (code) => (await page(`${path}?user_code=${code}`)).html),
    )
    for (const html of texts) expect(html).not.toContain('value="approve"')
  })

  it("approves with the chosen scopes and lifetime, once", async () => {
    const { user_code } = await started({ scopes: ["mail:read", "card:read"], expires_in_days: 30 })
    const form = { user_code, decision: "approve", scope: "mail:read", days: "7" }
    expect((await page(path, { form: { ...form, scope: "" } })).status).toBe(400)
    expect(await statusOf(user_code)).toBe("pending")
    expect((await page(path, { form })).status).toBe(200)
    expect(await statusOf(user_code)).toBe("approved")
    const { api_keys } = (await call(service.base, "GET", "/api/keys", { token: session })).body
    const [made] = api_keys
    expect([made.name, made.scopes]).toEqual(["desk", ["mail:read"]])
    expect(Math.round((Date.parse(made.expires_at) - Date.now()) / 86_400_000)).toBe(7)
    expect((await page(path, { form })).status).toBe(409)
    expect((await page(`${path}?user_code=${user_code}`)).html).not.toContain('value="approve"')
  })

  it("denies a request, and cannot grant more than it requests", async () => {
    const { user_code } = await started()
    expect((await page(path, { form: { user_code, decision: "deny" } })).status).toBe(200)
    expect(await statusOf(user_code)).toBe("denied")
    const other = await started({ scopes: ["mail:read"] })
    const wide = { user_code: other.user_code, decision: "approve", scope: "mail:read card:write" }
    expect((await page(path, { form: wide })).status).toBeGreaterThanOrEqual(400)
    expect(await statusOf(other.user_code)).toBe("pending")
  })

  it("takes decisions from its own page and the account holder only", async () => {
    const { user_code } = await started()
    const form = { user_code, decision: "approve", scope: "mail:read" }
    expect((await page(path, { form, origin: "https://evil.example" })).status).toBe(403)
    expect((await page(path, { form, signedIn: false })).status).toBe(403)
    expect((await page(path, { form: { user_code } })).status).toBe(400)
    expect((await page(path, { form: { ...form, user_code: "BBBB-BBBB" } })).status).toBeGreaterThanOrEqual(400)
    expect(await statusOf(user_code)).toBe("pending")
  })
})

describe("The page after an authorization at a platform", () => {
  const path = "/auth/connectors/callback"

  it("reports what the platform refused, as text", async () => {
    const refused = await page(`${path}?error=access_denied&state=s`)
    expect([refused.status, refused.html.includes("access_denied")]).toEqual([400, true])
    const hostile = await page(`${path}?error=x&state=s&error_description=${encodeURIComponent("<b>no</b>")}`)
    expect([hostile.status, hostile.html.includes("<b>no"), hostile.html.includes("&lt;b&gt;no")]).toEqual([
      400,
      false,
      true,
    ])
  })

  it.each(["", "?state=x", "?code=c&state=unknown"])("refuses a return that is not valid: %s", async (query) =>
    expect((await page(`${path}${query}`)).status).toBe(400),
  )

  it("hands the address on if nobody is signed in, and completes nothing", async () => {
    const anonymous = await page(`${path}?code=c&state=s`, { signedIn: false })
    expect([
      anonymous.status,
      anonymous.html.includes(`${path}?code=c&amp;state=s`) || anonymous.html.includes("code=c&amp;state=s"),
    ]).toEqual([200, true])
    expect(anonymous.html).not.toContain("<form")
    const form = { query: "code=c&state=unknown", apply_disclosure: "yes" }
    expect((await page(path, { form, signedIn: false })).status).toBe(403)
    expect((await page(path, { form, origin: "https://evil.example" })).status).toBe(403)
    expect((await page(path, { form })).status).toBeGreaterThanOrEqual(400)
    expect((await page(path, { form: {} })).status).toBe(400)
  })

  it("is reached over the public callback, which keeps the query and is not cached", async () => {
    const { status, headers } = await page("/connectors/callback?code=c&state=s")
    expect([status, headers.get("location"), headers.get("cache-control"), headers.get("referrer-policy")]).toEqual([
      303,
      `${path}?code=c&state=s`,
      "no-store",
      "no-referrer",
    ])
  })
})

describe("Pages for programs", () => {
  it("configure mail programs for an address of the service only", async () => {
    const profile = await page(`/mail/apple.mobileconfig?address=${handle}@mail.localhost`)
    expect([profile.status, profile.headers.get("content-disposition")]).toEqual([
      200,
      'attachment; filename="mail.mobileconfig"',
    ])
    expect(profile.html).toContain(`${handle}@mail.localhost`)
    for (const address of ["", "ada@other.example", "a<b>@mail.localhost", `${"a".repeat(64)}@mail.localhost`])
      expect((await page(`/mail/apple.mobileconfig?address=${encodeURIComponent(address)}`)).status, address).toBe(400)
    const [first, second] = [
      await page("/mail/config-v1.1.xml"),
      await page("/.well-known/autoconfig/mail/config-v1.1.xml"),
    ]
    expect([first.status, first.html]).toEqual([200, second.html])
  })

  it("describe the service to the platforms that it connects to", async () => {
    const metadata = async (platform: string) =>
      call(service.base, "GET", `/api/connectors/${platform}/client-metadata.json`)
    expect((await metadata("mastodon")).body).toMatchObject({
      client_name: "Agent Identity Service",
      redirect_uris: [expect.stringMatching(/\/connectors\/callback$/)],
      scopes: expect.stringContaining("read write"),
    })
    expect((await metadata("bluesky")).status).toBe(200)
    expect((await metadata("other")).status).toBeGreaterThanOrEqual(400)
  })

  it("redirect the console to its folder", async () => {
    const { status, headers } = await page("/console")
    expect([status, headers.get("location")]).toEqual([308, "/console/"])
  })
})

describe("The account", () => {
  it("has a signed head of its audit log, and usage of it by hour", async () => {
    const get = async (path: string) => call(service.base, "GET", path, { token: session })
    const head = await get("/api/audit/head")
    expect([200, 404]).toContain(head.status)
    const usage = await get("/api/audit/usage?since=2020-01-01")
    expect([
      usage.status,
      Array.isArray(usage.body.usage ?? usage.body.entries ?? Object.values(usage.body)[0]),
    ]).toEqual([200, true])
  })

  it("is unchanged by an empty change, and by a change of another version", async () => {
    const patch = (body: object, headers: Record<string, string> = {}) =>
      call(service.base, "PATCH", "/api/account", { token: session, body, headers })
    const before = await patch({})
    expect(before.status).toBe(200)
    const etag = before.headers.get("etag")!
    expect((await patch({ language: "fr" }, { "if-match": '"other"' })).status).toBe(412)
    expect((await call(service.base, "GET", "/api/account", { token: session })).body.language).toBe("en")
    expect((await patch({ language: "de" }, { "if-match": etag })).body.language).toBe("de")
    expect((await patch({ language: "fr" }, { "if-match": etag })).status).toBe(412)
  })
})
