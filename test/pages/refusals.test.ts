/** Responses of the pages around sign-in, the profile and shown mail when a request is refused or a part is unavailable. */
import * as Problem from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { calls, detail, fetched, holder, limited, type Outcome, refusal, unavailable } from "./FakeServices.ts"

describe("The sign-in page", () => {
  const issued = Effect.succeed({ token: "secret-token", language: "en", expiresAt: new Date() })
  const send = (set: Readonly<Record<string, Outcome>>, form: Readonly<Record<string, string>> = {}) =>
    fetched("/auth/sign-in", set, { form: { email: "ada@example.org", terms: "yes", user_code: "BBBB-CCCC", ...form } })

  it.each<readonly [string, Readonly<Record<string, Outcome>>, number, string]>([
    ["no new accounts are admitted", { link: refusal(Problem.InviteRequired) }, 403, "admits no new accounts"],
    ["the Terms are not accepted", { link: refusal(Problem.TosNotAccepted) }, 422, "Accept the Terms of Service"],
    ["the address has too many links", { link: limited }, 429, "Too many links"],
    ["the store is unavailable", { link: unavailable }, 503, "Temporarily unavailable"],
    ["the mail cannot be sent", { link: issued, mail: Effect.fail("relay") }, 503, "Temporarily unavailable"],
  ])("keeps what was entered if %s", async (_, set, status, text) => {
    const { html, ...found } = await send(set)
    expect(found.status).toBe(status)
    expect(html).toContain(text)
    expect(html).toContain('value="ada@example.org"')
    expect(html).toContain('name="user_code" value="BBBB-CCCC"')
    expect(html).not.toContain("secret-token")
    expect(html).not.toContain("invite_code")
  })

  it("counts one call for each form, and checks the limit of the client first", async () => {
    const sent = await send({ link: issued })
    expect([sent.status, calls]).toEqual([200, ["limit", "link", "mail"]])
    expect(sent.html).not.toContain("secret-token")
    const over = await send({ limit: limited, link: issued })
    expect([over.status, calls]).toEqual([429, ["limit"]])
    expect(over.html).toContain("Too many links")
  })

  it("mails no link without a token, and refuses what is no address", async () => {
    const silent = await send({ link: Effect.succeed({ token: null, language: "en", expiresAt: new Date() }) })
    expect([silent.status, calls]).toEqual([200, ["limit", "link"]])
    const invalid = await send({ link: issued }, { email: "ada" })
    expect([invalid.status, calls]).toEqual([400, ["limit"]])
    expect(invalid.html).toContain("Enter a valid email address")
  })

  it("accepts no form of another site", async () => {
    const elsewhere = { form: { email: "ada@example.org" }, headers: { origin: "https://evil.example" } }
    for (const path of ["/auth/sign-in", "/auth/magic-link"]) {
      const { status, html } = await fetched(path, {}, elsewhere)
      expect([status, calls]).toEqual([403, []])
      expect(html).toContain("another site")
    }
  })
})

describe("The page of a magic link", () => {
  const token = "t".repeat(43)
  const open = (set: Readonly<Record<string, Outcome>>) => fetched("/auth/magic-link", set, { form: { token } })

  it("says whether to try again or to request another link", async () => {
    const down = await open({ consume: unavailable })
    expect([down.status, down.html.includes("Temporarily unavailable")]).toEqual([503, true])
    const used = await open({ consume: refusal(Problem.MagicLinkInvalid) })
    expect([used.status, used.html.includes("Request a new link")]).toEqual([400, true])
    const good = await open({ consume: Effect.succeed({ session_token: "s", org: { id: "o" }, session: { id: "s" } }) })
    expect([good.status, good.headers.get("location"), calls]).toEqual([
      303,
      "/console/",
      ["consume", "record allowed"],
    ])
  })
})

describe("The page of a device login", () => {
  const decide = (decision: string, set: Readonly<Record<string, Outcome>>) =>
    fetched("/auth/device", set, { form: { user_code: "BBBB-CCCC", decision, scope: "mail:read" } })

  it.each<readonly [string, Outcome, number, string]>([
    ["approve", refusal(Problem.KeyQuotaExhausted), 409, detail],
    ["approve", Effect.fail(new Problem.ScopeExceeds({ detail, scopes: [] })), 403, detail],
    ["approve", refusal(Problem.DeviceAuthorizationSettled), 409, detail],
    ["approve", refusal(Problem.NotFound), 404, "No device is waiting with this code"],
    ["approve", unavailable, 503, "Temporarily unavailable"],
    ["deny", refusal(Problem.DeviceAuthorizationSettled), 409, detail],
    ["deny", unavailable, 503, "Temporarily unavailable"],
  ])("explains why it cannot %s", async (decision, given, status, text) => {
    const { html, ...found } = await decide(decision, { [decision]: given })
    expect(found.status).toBe(status)
    expect(html).toContain(text)
    expect(html).not.toContain("approved")
  })

  it("tells an unknown code from a store that is unavailable", async () => {
    const looked = (view: Outcome) => fetched("/auth/device?user_code=BBBB-CCCC", { view })
    const lost = await looked(unavailable)
    expect([lost.status, lost.html.includes("Temporarily unavailable")]).toEqual([503, true])
    const missing = await looked(refusal(Problem.NotFound))
    expect([missing.status, missing.html.includes("No device is waiting with this code")]).toEqual([404, true])
  })

  const device = { user_code: "BBBB-CCCC", name: "laptop", status: "pending" }
  const shown = (view: object, caller: object = {}) =>
    fetched("/auth/device?user_code=BBBB-CCCC", {
      view: Effect.succeed({ ...device, ...view }),
      caller: Effect.succeed({ ...holder, ...caller }),
    })
  const daysOf = (html: string) => [...html.matchAll(/<option value="(\d*)"/g)].map(([, days]) => days)

  it("offers less than what the device asks for, in the language of the account", async () => {
    const german = { org: { ...holder.org, language: "de" } }
    const some = await shown({ client: null, scopes: ["mail:read", "card:read"], expires_in_days: 30 }, german)
    expect(some.html).toContain('<html lang="de"')
    expect(some.html).toContain("nicht angegeben")
    for (const scope of ["mail:read", "card:read"]) expect(some.html).toContain(`value="${scope}" checked`)
    expect(daysOf(some.html)).toEqual(["30", "7", "1"])
    const all = await shown({ client: "svc", scopes: ["*"], expires_in_days: null })
    expect(all.html).toContain("<dd>svc</dd>")
    expect(all.html).toContain('<option value="*" selected>')
    expect(daysOf(all.html)).toEqual(["", "365", "90", "30", "7", "1"])
  })

  it("takes no key for a session", async () => {
    const { html } = await shown({}, { kind: "admin_key" })
    expect([html.includes('name="email"'), calls]).toEqual([true, []])
  })

  it.each([
    [refusal(Problem.DeviceAuthorizationSettled), "record refused"],
    [unavailable, "record failed"],
  ])("records what came of a denial", async (deny, record) => {
    await decide("deny", { deny })
    expect(calls).toEqual(["deny", record])
  })

  it("creates no key without its audit record", async () => {
    const refused = await decide("approve", { secret: refusal(Problem.AuditUnavailable) })
    expect([refused.status, calls]).toEqual([503, ["secret"]])
    const approved = await decide("approve", {})
    expect([approved.status, calls]).toEqual([200, ["secret", "approve"]])
    const denied = await decide("deny", {})
    expect([denied.status, calls]).toEqual([200, ["deny", "record allowed"]])
  })
})

describe("A page of the account holder", () => {
  const app = "/auth/authorize?client_id=https%3A%2F%2Fapp.example%2Fid&response_type=code"
  const connection = "/auth/connectors/callback?code=c&state=s"
  const form = { user_code: "BBBB-CCCC", decision: "deny", query: "code=c&state=s" }

  it.each([
    ["/auth/device", undefined],
    ["/auth/device", form],
    [app, undefined],
    [app, form],
    [connection, undefined],
    ["/auth/connectors/callback", form],
  ])("does not ask %s to sign in again while the session cannot be looked up (form: %j)", async (path, sent) => {
    const { status, html } = await fetched(path, { caller: unavailable }, sent === undefined ? {} : { form: sent })
    expect([status, calls.filter((name) => name !== "limit")]).toEqual([503, []])
    expect(html).toContain("Temporarily unavailable")
    expect(html).not.toContain('name="email"')
  })

  it("does not call an authorization at a platform invalid while it cannot be read", async () => {
    const lost = await fetched(connection, { authorization: unavailable })
    expect([lost.status, lost.html.includes("Temporarily unavailable")]).toEqual([503, true])
    const unknown = await fetched(connection, { authorization: refusal(Problem.ConnectorStateInvalid) })
    expect([unknown.status, unknown.html.includes("no longer valid")]).toEqual([400, true])
  })
})

describe("The page after an authorization at a platform", () => {
  const authorization = Effect.succeed({ id: "i", handle: "ada", canonical: "ada", platform: "mastodon" })
  const finish = (disclosed: string) =>
    `finish ${JSON.stringify({ org_id: "o", state: "s", query: "code=c&state=s", apply_disclosure: disclosed === "yes" })}`
  const connect = (set: Readonly<Record<string, Outcome>>, disclosed = "yes") =>
    fetched(
      "/auth/connectors/callback",
      { authorization, ...set },
      { form: { query: "code=c&state=s", apply_disclosure: disclosed } },
    )

  it("asks which account to connect, and connects nothing by itself", async () => {
    const { html, status } = await fetched("/auth/connectors/callback?code=c&state=s", { authorization })
    expect([status, calls]).toEqual([200, ["authorization"]])
    for (const part of ["<dd>mastodon</dd>", "<dd>@ada</dd>", 'value="code=c&amp;state=s"', 'value="yes" checked'])
      expect(html).toContain(part)
  })

  it.each([
    ["yes", true, "now states that the account is automated"],
    ["no", false, "does not state that the account is automated"],
  ])("connects it with a click, and says what its profile discloses (%s)", async (asked, disclosed, text) => {
    const connector = Effect.succeed({ account: "<ada>@social.example", disclosed })
    const { html, status } = await connect({ connector }, asked)
    expect([status, calls]).toEqual([200, ["authorization", finish(asked), "connector", "record allowed"]])
    for (const part of ["Account connected", "&lt;ada&gt;@social.example", text]) expect(html).toContain(part)
  })

  it.each<readonly [string, Readonly<Record<string, Outcome>>, number, ReadonlyArray<string>, string]>([
    [
      "the state is unknown",
      { authorization: refusal(Problem.ConnectorStateInvalid) },
      400,
      ["no longer valid"],
      "refused",
    ],
    [
      "it was refused",
      { [finish("yes")]: refusal(Problem.ConnectorCredentialRefused) },
      422,
      ["not connected", detail],
      "refused",
    ],
    ["the store is unavailable", { [finish("yes")]: unavailable }, 503, ["not connected", detail], "failed"],
    ["a part is broken", { [finish("yes")]: Effect.die("broken") }, 400, ["not connected"], "failed"],
  ])("says why it connected nothing if %s", async (_, set, status, texts, recorded) => {
    const { html, ...found } = await connect(set)
    expect(found.status).toBe(status)
    expect(calls.at(-1)).toBe(`record ${recorded}`)
    for (const text of [...texts, "Start again"]) expect(html).toContain(text)
    expect(html).not.toContain("Account connected")
  })
})

describe("The profile", () => {
  it.each<readonly [Readonly<Record<string, Outcome>>, number, string, string]>([
    [{ limit: limited }, 429, "Too many requests", "rate_limited"],
    [{ profile: unavailable }, 503, "Temporarily unavailable", "unavailable"],
    [{ profile: refusal(Problem.NotFound) }, 404, "Agent not found", "not_found"],
  ])("is a page, and its card a problem that every site may read: %j", async (set, status, text, code) => {
    const page = await fetched("/@ada", set)
    expect([page.status, page.html.includes(text)]).toEqual([status, true])
    const card = await fetched("/@ada/agent-card.json", set)
    expect([card.status, JSON.parse(card.html).code]).toEqual([status, code])
    expect(card.headers.get("access-control-allow-origin")).toBe("*")
  })
})

describe("The body of a shown message", () => {
  const owner = Effect.succeed({ caller: holder, named: { id: "i", handle: "ada" } })
  it.each<readonly [string, Readonly<Record<string, Outcome>>, number]>([
    ["the session has ended", { credential: refusal(Problem.Unauthenticated) }, 401],
    ["the key has expired", { credential: refusal(Problem.KeyExpired) }, 401],
    ["the Grant was revoked", { credential: refusal(Problem.GrantRevoked) }, 401],
    ["the account is being deleted", { credential: refusal(Problem.AccountDeleting) }, 403],
    ["the Identity is unknown", { credential: Effect.succeed({ caller: holder, named: undefined }) }, 404],
    [
      "the caller is no session",
      { credential: Effect.succeed({ caller: { ...holder, kind: "admin_key" }, named: {} }) },
      404,
    ],
    ["the limit of calls is reached", { credential: owner, calls: limited }, 429],
    ["the message is unknown", { credential: owner, read: refusal(Problem.NotFound) }, 404],
    ["the store is unavailable", { credential: owner, read: unavailable }, 503],
  ])("is empty and not cached if %s", async (_, set, status) => {
    const headers = { authorization: "Bearer t", "sec-fetch-dest": "iframe" }
    const found = await fetched("/console/mail/ada/msg_1/body", set, { headers })
    expect([found.status, found.html]).toEqual([status, "<!doctype html><title>Mail</title>"])
    expect(found.headers.get("cache-control")).toBe("no-store")
    expect(calls.includes("read")).toBe(set["read"] !== undefined)
  })

  it("is shown in a frame only, with a credential", async () => {
    for (const headers of [
      { authorization: "Bearer t" },
      { authorization: "Basic t", "sec-fetch-dest": "iframe" },
      { "sec-fetch-dest": "iframe" },
    ]) {
      const found = await fetched("/console/mail/ada/msg_1/body", {}, { headers: headers as Record<string, string> })
      expect([found.status, calls]).toEqual([403, []])
    }
  })
})

describe("The page between a link in a mail and its destination", () => {
  const foreign = "letters from other alphabets"
  const plain = "The connection is not encrypted."
  it.each([
    ["https://shop.example/a?b=c", "https://shop.example/a?b=c", []],
    ["http://shop.example/", "<bdi>shop.example</bdi>", [plain]],
    ["https://xn--80ak6aa92e.com/", "<bdi>\u0430\u0440\u0440\u04cf\u0435.com</bdi>", [foreign]],
    ["https://shop.example:8443/", "<bdi>shop.example:8443</bdi>", []],
    ["mailto:ada%40shop.example", "<bdi>ada@shop.example</bdi>", []],
    ["mailto:%ff@shop.example", "<bdi>%ff@shop.example</bdi>", []],
  ])("shows where %s leads, and warns of what is unusual", async (to, text, warnings) => {
    const { headers, html, status } = await fetched(`/console/leave?to=${encodeURIComponent(to)}`, {})
    expect([status, headers.get("referrer-policy")]).toEqual([200, "no-referrer"])
    expect(html).toContain(text)
    expect([foreign, plain].filter((one) => html.includes(one))).toEqual(warnings)
    expect(html).toContain(to.startsWith("mailto:") ? "starts a message to" : "leads to")
    expect(html).toContain('<meta name="robots" content="noindex">')
  })
})
