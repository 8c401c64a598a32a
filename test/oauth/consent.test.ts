import { beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  registerClientId,
  obtainTokens,
  redirectOf,
  signedInUser,
  registerClient,
  verifierOf,
} from "./Consent.ts"

let service: TestService
let ada: Awaited<ReturnType<typeof signedInUser>>
beforeAll(async () => {
  service = await sharedService()
  ada = await signedInUser(service.base)
})

const challenge = challengeOf(verifierOf())
const here = "http://localhost:4711/callback"

describe("Consent", () => {
  const requested = async () => {
    const client = await registerClientId(service.base, here)
    return ada.browser.go(authorizationUrl(service.base, { client, redirect: here, challenge }))
  }
  const allow = { decision: "allow", agents: "one", rights: "read" }

  it.each([
    ["no Origin", { origin: "" }],
    ["a foreign Origin", { origin: "https://evil.example" }],
    ["no Origin of anybody", { origin: "null" }],
    ["our Origin from another site", { "sec-fetch-site": "cross-site" }],
  ])("is rejected with %s", async (_, headers) => {
    const shown = await requested()
    expect((await ada.browser.decide(shown, allow, headers)).status).toBe(403)
    expect(redirectOf(await ada.browser.decide(shown, allow)).searchParams.get("code")).not.toBeNull()
  })

  it("is rejected from another session", async () => {
    const shown = await requested()
    const bob = await signedInUser(service.base)
    const answer = await bob.browser.decide(shown, allow)
    expect([answer.status, answer.text.includes("http-equiv")]).toEqual([400, false])
  })

  it("names Identities of the account, or asks again", async () => {
    for (const one of ["ada", "", crypto.randomUUID()]) {
      const answer = await ada.browser.decide(await requested(), { ...allow, one })
      expect([answer.status, answer.text.includes("http-equiv")], one).toEqual([400, false])
    }
  })

  it("is decided once", async () => {
    const shown = await requested()
    redirectOf(await ada.browser.decide(shown, allow))
    expect((await ada.browser.decide(shown, allow)).text).not.toContain("http-equiv")
  })

  it("is not shown in a frame or beside an opener", async () => {
    const { headers, text } = await requested()
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'")
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin")
    expect(text).not.toContain("<script")
  })

  it("cannot be given with a key", async () => {
    const key = await call(service.base, "POST", "/api/keys", { token: ada.session, body: { name: "k" } })
    const shown = await browser(service.base, key.body.key).go(
      authorizationUrl(service.base, { client: await registerClientId(service.base, here), redirect: here, challenge }),
    )
    expect(shown.text).not.toContain('name="seal"')
  })

  it("returns access_denied to the app when it is denied", async () => {
    const answer = redirectOf(await ada.browser.decide(await requested(), { decision: "deny" }))
    expect(Object.fromEntries(answer.searchParams)).toMatchObject({ error: "access_denied", iss: service.base })
    const { body } = await call(service.base, "GET", "/api/audit?action=oauth.consent", { token: ada.session })
    expect(body.records[0]).toMatchObject({ outcome: "refused", code: "access_denied" })
  })

  it("preselects no dangerous scope, even if the app requested it", async () => {
    const client = await registerClientId(service.base, here)
    const more = { scope: "vault:secret account:admin mail:send" }
    const { text } = await ada.browser.go(authorizationUrl(service.base, { client, redirect: here, challenge, more }))
    const checked = [...text.matchAll(/name="([a-z]+)" value="([^"]*)" checked/g)].map(
      ([, name, value]) => `${name} ${value}`,
    )
    expect(checked).toEqual(["agents one", "rights choose", "days 90"])
  })

  it("shows the app's name as text without control characters", async () => {
    const { body, status } = await registerClient(
      service.base,
      [here],
      `<b>\u202eClaude\u200b</b>\u0007${"x".repeat(100)}`,
    )
    const { text } = await ada.browser.go(
      authorizationUrl(service.base, { client: body["client_id"], redirect: here, challenge }),
    )
    expect(text).toContain("&lt;b&gt;Claude&lt;/b&gt;x")
    // The time of the registration is in seconds (RFC 7591 section 3.2.1).
    expect(status).toBe(201)
    expect(Math.abs(body["client_id_issued_at"] - Date.now() / 1000)).toBeLessThan(600)
    for (const hidden of ["<b>", "\u202e", "\u200b", "\u0007", "x".repeat(60)]) expect(text).not.toContain(hidden)
  })

  it("given again replaces the access and creates no second Grant", async () => {
    const bob = await signedInUser(service.base)
    const client = await registerClientId(service.base, here)
    const first = await obtainTokens(service.base, bob.browser, client, here, { days: "30" })
    const daysLeft = async () => {
      const { body } = await call(service.base, "GET", "/api/grants", { token: bob.session })
      return body.grants.map((grant: any) => Math.round((Date.parse(grant.expires_at) - Date.now()) / 86_400_000))
    }
    expect(await daysLeft()).toEqual([30])
    const shown = await bob.browser.go(authorizationUrl(service.base, { client, redirect: here, challenge }))
    expect(shown.text).toContain("identity:read")
    expect(first.answer.body["scope"]).not.toContain("mail:send")
    const second = await obtainTokens(service.base, bob.browser, client, "http://localhost:9999/callback", {
      rights: "act",
      days: "365",
    })
    expect(second.answer.body["scope"]).toContain("mail:send")
    expect(await daysLeft()).toEqual([365])
  })

  it.each([
    ["read", ["identity:read", "mail:read"], ["identity:read", "mail:read"]],
    ["read", ["identity:read", "mail:send", "account:read"], ["identity:read"]],
    ["act", ["identity:read", "mail:send", "vault:secret"], ["identity:read", "mail:send"]],
  ])("with the preset %j of %j grants at most %j", async (rights, requested, granted) => {
    const { answer } = await obtainTokens(
      service.base,
      ada.browser,
      await registerClientId(service.base, here),
      here,
      { rights },
      requested,
    )
    expect(answer.body["scope"].split(" ").sort()).toEqual(granted)
  })

  it("offers no preset that would grant nothing", async () => {
    const client = await registerClientId(service.base, here)
    const offers = async (scope: string) => {
      const { text } = await ada.browser.go(
        authorizationUrl(service.base, { client, redirect: here, challenge, more: { scope } }),
      )
      return [...text.matchAll(/name="rights" value="([a-z]+)"/g)].map(([, value]) => value)
    }
    expect(await offers("mail:read")).toEqual(["read", "choose"])
    expect(await offers("mail:send")).toEqual(["act", "choose"])
    expect(await offers("vault:secret")).toEqual(["choose"])
  })
})
