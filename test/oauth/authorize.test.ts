/** The page on which an account holder connects an app: what it refuses, what it keeps and what it records. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { calls, fetched, limited, type Outcome, unavailable } from "../pages/FakeServices.ts"

describe("The page on which an app is connected", () => {
  const id = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99"
  const redirect = "https://app.example/back"
  const query = new URLSearchParams({
    client_id: "oc_1",
    redirect_uri: redirect,
    response_type: "code",
    scope: "mail:read",
    state: "s",
    code_challenge: "c".repeat(43),
    code_challenge_method: "S256",
    resource: "https://id.example/api/mcp",
  }).toString()
  const client = Effect.succeed({ id: "oc_1", name: "App", redirects: [redirect] })
  const request = Effect.succeed({ id, query })
  const kept = Effect.succeed({ id, secret: "x".repeat(32) })
  const anonymous = { headers: { cookie: "" } }
  const unknown = "This app cannot be connected"
  const expired = "This request is no longer valid"
  const reload = "Temporarily unavailable. Try again in a moment.</h1><p>Nothing was sent to the app. Reload this page."

  type Opened = readonly [string, string, Readonly<Record<string, Outcome>>, number, string, ReadonlyArray<string>]
  it.each<Opened>([
    ["the client has too many requests", query, { limit: limited }, 429, reload, []],
    ["the store is unavailable", query, { open: unavailable }, 503, reload, ["open"]],
    ["the query is too long", `${query}&x=${"x".repeat(9_000)}`, {}, 400, unknown, []],
    ["the app is unknown", query, { open: request }, 400, unknown, ["open", "document"]],
    ["the app has no id", "", { open: Effect.succeed({ id, query: "" }) }, 400, unknown, ["open"]],
    [
      "its document is refused",
      query,
      { open: request, document: Effect.fail({ _tag: "DocumentRefused", message: "No TLS." }) },
      400,
      "No TLS.",
      ["open", "document"],
    ],
    [
      "the address is not registered",
      query,
      { open: Effect.succeed({ id, query: query.replace("back", "other") }), document: client },
      400,
      unknown,
      ["open", "document"],
    ],
    ["the request has no valid id", "continue=1", {}, 400, expired, []],
    ["the request was decided or expired", `continue=${id}`, {}, 400, expired, ["claim"]],
  ])("explains that %s", async (_, text, set, status, shown, done) => {
    const found = await fetched(`/auth/authorize?${text}`, set)
    expect([found.status, found.html.includes(shown), calls]).toEqual([status, true, ["limit", ...done]])
    expect(found.headers.get("location")).toBeNull()
  })

  it.each([
    ["de", "Diese Anfrage ist nicht mehr gültig"],
    ["fr", "Cette demande n’est plus valable"],
  ])("speaks the language of a visitor: %s", async (lang, title) => {
    const headers = { cookie: "", "accept-language": lang }
    const { html } = await fetched("/auth/authorize?continue=1", {}, { headers })
    expect(html).toContain(`<html lang="${lang}"`)
    expect(html).toContain(title)
  })

  it("keeps a request of an unknown visitor only for a registered app, until another user has signed in", async () => {
    const wrong = await fetched(`/auth/authorize?${query}`, {}, anonymous)
    expect([wrong.status, wrong.html.includes(unknown), calls]).toEqual([400, true, ["limit", "client"]])
    const right = await fetched(`/auth/authorize?${query}`, { client, keep: kept }, anonymous)
    expect([right.status, right.html.includes('name="email"'), calls]).toEqual([200, true, ["limit", "client", "keep"]])
    expect(right.headers.get("set-cookie")).toMatch(
      new RegExp(`^__Host-svc_authorize=${id}\\.x{32}; Max-Age=900; Path=/; HttpOnly; Secure; SameSite=Lax$`),
    )
    const resumed = await fetched(`/auth/authorize?continue=${id}`, {}, anonymous)
    expect([resumed.html.includes(`value="${id}"`), calls]).toEqual([true, ["limit"]])
    const other = await fetched(`/auth/authorize?continue=${id}&as=other`, { claim: request, client, keep: kept })
    expect([other.html.includes('name="email"'), calls]).toEqual([true, ["limit", "claim", "client", "keep"]])
  })

  const decide = (
    form: object,
    set: Readonly<Record<string, Outcome>>,
    headers: Record<string, string | undefined> = {},
  ) =>
    fetched("/auth/authorize", set, { form: { request: id, seal: `seal:c/${id}`, decision: "deny", ...form }, headers })

  it("accepts a decision only from its own page, in the session that it was shown to", async () => {
    for (const headers of [
      { cookie: "" },
      { origin: "https://evil.example" },
      { origin: undefined },
      { "sec-fetch-site": "same-site" },
    ]) {
      const found = await decide({}, {}, headers)
      expect([found.status, found.html.includes(expired), calls]).toEqual([403, true, []])
    }
    for (const [form, done] of [
      [{ seal: `seal:other/${id}` }, []],
      [{ decision: "maybe" }, []],
      [{}, ["claim"]],
    ] as const) {
      const found = await decide(form, {})
      expect([found.status, found.html.includes(expired), calls]).toEqual([400, true, done])
    }
    const unregistered = await decide({}, { claim: request })
    expect([unregistered.html.includes(unknown), calls]).toEqual([true, ["claim", "client"]])
  })

  it("records a denial once, and tells the app", async () => {
    for (const [isFirst, done] of [
      [true, ["claim", "client", "close", "record refused"]],
      [false, ["claim", "client", "close"]],
    ] as const) {
      const found = await decide({}, { claim: request, client, close: Effect.succeed(isFirst) })
      expect(calls).toEqual(done)
      expect(found.html.replaceAll("&amp;", "&")).toContain(`${redirect}?error=access_denied&`)
    }
  })

  it("asks again for a decision without a choice, and for one that the account has no room for", async () => {
    const allow = { decision: "allow" }
    const chosen = { ...allow, agents: "all", rights: "read", days: "90" }
    const shown = ["claim", "client", "consent", "present"]
    const refused = (reason: string) => ({ consent: Effect.fail({ _tag: "ConsentRefused", reason }) })
    for (const [form, set, says, done] of [
      [allow, {}, "Select at least one agent", ["claim", "client", "present"]],
      [chosen, refused("full"), "already has 50 connected apps", shown],
      [chosen, refused("identities"), "Select at least one agent", shown],
      [chosen, refused("gone"), expired, ["claim", "client", "consent"]],
    ] as const) {
      const found = await decide(form, { claim: request, client, ...set })
      expect([found.status, found.html.includes(says), calls]).toEqual([400, true, done])
    }
    const agreed = Effect.succeed({ grantId: "g", code: "the-code" })
    const found = await decide(chosen, { claim: request, client, consent: agreed })
    expect([found.status, calls]).toEqual([200, ["claim", "client", "consent", "record allowed"]])
    expect(found.html.replaceAll("&amp;", "&")).toContain(`${redirect}?code=the-code&state=s&iss=`)
  })
})
