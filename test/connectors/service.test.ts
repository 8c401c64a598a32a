import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { closeContexts, openBrowser } from "../harness/Browser.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { type MastodonServer, startServer } from "./mastodon/Server.ts"
import { has } from "../harness/Programs.ts"

let service: TestService
let server: MastodonServer
let owner: Awaited<ReturnType<typeof signUp>>

beforeAll(async () => {
  service = await sharedService()
  server = await startServer()
  owner = await signUp(service.base)
})
afterAll(async () => {
  await server.stop()
})

const at = (handle: string, rest = "") => `/api/identities/${handle}/connectors${rest}`
const api = (method: string, path: string, body?: unknown, token = owner.session) =>
  call(service.base, method, path, { token, ...(body === undefined ? {} : { body }) })

const begin = async (handle: string) => {
  const start = await api("POST", at(handle, "/mastodon/authorize"), { account: server.base })
  expect(start.status).toBe(200)
  return start.body as { authorization_url: string; state: string; instance_rules: ReadonlyArray<object> }
}

const connected = async (apply_disclosure = false) => {
  const agent = await makeIdentity(service.base, owner.session)
  const bot = server.world.join(`bot${agent.handle.replaceAll("-", "")}`)
  const callback = server.allow((await begin(agent.handle)).authorization_url, bot)
  const made = await api("POST", "/api/connectors/callback", { callback, apply_disclosure })
  return { ...agent, bot, made }
}

/** Returns the records of completed and refused connections. */
const completions = async (handle: string) =>
  (await api("GET", `/api/audit?action=connectors.callback&identity=${handle}`)).body.records.map(
    ({ identity, target, outcome, source }: any) => [identity, target.name, outcome, source.via],
  )

describe("the Connector API", () => {
  it("connects, lists, pauses, posts and removes", async () => {
    const { handle, made, bot } = await connected(true)
    expect(made).toMatchObject({
      status: 200,
      body: {
        platform: "mastodon",
        status: "connected",
        account: `${bot.acct}@${new URL(server.base).host}`,
        account_id: bot.id,
        service: server.base,
        connected_via: "oauth",
        disclosed: true,
        paused: false,
        last_error: null,
      },
    })
    expect(await completions(handle)).toEqual([[handle, "mastodon", "allowed", "rest"]])
    expect((await api("GET", at(handle))).body).toMatchObject({ paused: false, connectors: [{ platform: "mastodon" }] })
    const posted = await api("POST", at(handle, "/mastodon/posts"), {
      text: "Hello",
      options: { mastodon: { visibility: "unlisted" } },
    })
    expect(posted).toMatchObject({ status: 200, body: { text: "Hello", author_id: bot.id, reply_to: null } })
    const paused = await api("PATCH", at(handle), { paused: true })
    expect(paused.body).toMatchObject({ paused: true, connectors: [{ status: "paused", paused: true }] })
    const one = await api("PATCH", at(handle, "/mastodon"), { paused: false })
    expect([one.status, one.body.code]).toEqual([409, "connector_paused"])
    const refused = await api("POST", at(handle, "/mastodon/posts"), { text: "Hello" })
    expect(refused).toMatchObject({ status: 409, body: { code: "connector_paused", agent_hint: "stop" } })
    await api("PATCH", at(handle), { paused: false })
    expect((await api("GET", at(handle, "/mastodon"))).body).toMatchObject({ status: "connected", paused: false })
    expect((await api("DELETE", at(handle, "/mastodon"))).status).toBe(204)
    expect([...server.tokens.values()].filter(({ account }) => account === bot)).toEqual([])
    expect((await api("GET", at(handle, "/mastodon"))).status).toBe(404)
    const none = await api("POST", at(handle, "/mastodon/posts"), { text: "Hello" })
    expect([none.status, none.body.code]).toEqual([409, "connector_not_connected"])
  })

  it("requires the current version to pause and to remove", async () => {
    const { handle } = await connected()
    const change = (method: string, path: string, tag: string, body?: object) =>
      call(service.base, method, path, {
        token: owner.session,
        headers: { "if-match": tag },
        ...(body === undefined ? {} : { body }),
      })
    for (const path of [at(handle), at(handle, "/mastodon")]) {
      const tag = (await api("GET", path)).headers.get("etag")!
      expect((await change("PATCH", path, tag, { paused: true })).body).toMatchObject({ paused: true })
      expect((await change("PATCH", path, tag, { paused: false })).body.code).toBe("precondition_failed")
      expect((await api("GET", path)).body.paused).toBe(true)
      await api("PATCH", path, { paused: false })
    }
    const tag = (await api("GET", at(handle, "/mastodon"))).headers.get("etag")!
    expect((await change("DELETE", at(handle, "/mastodon"), '"other"')).status).toBe(412)
    expect((await change("DELETE", at(handle, "/mastodon"), tag)).status).toBe(204)
  })

  it("rejects invalid requests with their codes before any call", async () => {
    const { handle } = await connected()
    const other = await makeIdentity(service.base, owner.session)
    // Background calls for streams and for the server's description do not count.
    const called = () =>
      server.seen.filter(({ path }) => !/notifications|streaming|instance|nodeinfo/.test(path)).length
    const calls = called()
    const codes = async (method: string, path: string, body?: unknown, token?: string) => {
      const answer = await api(method, path, body, token)
      return [answer.status, answer.body.code]
    }
    const posts = at(handle, "/mastodon/posts")
    expect(await codes("POST", posts, { text: "x", options: { mastodon: { langs: [] } } })).toEqual([
      422,
      "connector_option_unknown",
    ])
    expect(await codes("POST", posts, { text: "x", options: { bluesky: {} } })).toEqual([
      422,
      "connector_option_unknown",
    ])
    expect(await codes("POST", posts, { text: "x", options: { mastodon: { visibility: "loud" } } })).toEqual([
      400,
      "invalid_request",
    ])
    expect(await codes("POST", posts, { text: " " })).toEqual([400, "invalid_request"])
    expect(await codes("POST", posts, { text: "x", surprise: 1 })).toEqual([400, "invalid_request"])
    expect(await codes("GET", `${posts}?cursor=nope`)).toEqual([400, "invalid_cursor"])
    expect(await codes("POST", posts, { text: "x" }, other.secrets.identity_key)).toEqual([403, "foreign_identity"])
    expect(await codes("PUT", at(handle, "/mastodon"), { account: "a", app_password: "b" })).toEqual([
      422,
      "connector_capability_unsupported",
    ])
    expect(await codes("POST", "/api/connectors/callback", { callback: "?state=unknown&code=1" })).toEqual([
      400,
      "connector_state_invalid",
    ])
    expect(await codes("POST", at(handle, "/mastodon/authorize"), { account: "not an account" })).toEqual([
      400,
      "invalid_request",
    ])
    expect(called()).toBe(calls)
  })

  it("lets an Identity Key pause its own Connector, but neither resume it nor finish another's authorization", async () => {
    const { handle, secrets } = await connected()
    const other = await makeIdentity(service.base, owner.session)
    const key = secrets.identity_key as string
    expect((await api("PATCH", at(handle, "/mastodon"), { paused: true }, key)).body).toMatchObject({
      status: "paused",
    })
    expect(await api("PATCH", at(handle, "/mastodon"), { paused: false }, key)).toMatchObject({
      status: 403,
      body: { code: "admin_required" },
    })
    const { authorization_url } = await begin(other.handle)
    const callback = server.allow(authorization_url, server.world.join(`b${other.handle}`))
    const foreign = await api("POST", "/api/connectors/callback", { callback }, key)
    expect([foreign.status, foreign.body.code]).toEqual([400, "connector_state_invalid"])
    expect((await api("POST", "/api/connectors/callback", { callback }, other.secrets.identity_key)).status).toBe(200)
  })

  it("delivers a mention to a Webhook", async () => {
    const { handle, bot } = await connected()
    const receiver = await startReceiver()
    await api("POST", `/api/identities/${handle}/webhooks`, { url: receiver.url, event_types: ["connector.mention"] })
    await eventually(
      () =>
        service.query<{ mark: string | null }>(
          (sql) => sql`select mark from connector c join identity i on i.id = c.identity_id where i.handle = ${handle}`,
        ),
      ([row]) => row?.mark != null,
    )
    server.world.publish(server.world.join("grace"), `@${bot.acct} hello`)
    // The next poll is due in half a minute; pausing and resuming starts it now.
    await api("PATCH", at(handle, "/mastodon"), { paused: true })
    await api("PATCH", at(handle, "/mastodon"), { paused: false })
    await eventually(
      () => Promise.resolve(receiver.got),
      (got) => got.length > 0,
    )
    expect(receiver.got[0]!.body).toMatchObject({
      type: "connector.mention",
      data: { platform: "mastodon", post: { text: `@${bot.acct} hello` } },
    })
    await receiver.stop()
  })
})

describe("the OAuth callback page", () => {
  it("connects nothing without a click, reports the result in three languages, and escapes the platform's text", async () => {
    const { handle } = await makeIdentity(service.base, owner.session)
    const callback = server.allow((await begin(handle)).authorization_url, server.world.join(`c${handle}`))
    const page = async (url: string, language: string) => {
      const response = await fetch(url, { headers: { "accept-language": language } })
      return { status: response.status, html: await response.text() }
    }
    expect((await page(callback, "en")).html).toContain("Give this address to the agent")
    expect((await page(callback, "de-CH, en")).html).toContain("Gib diese")
    expect((await page(callback, "fr")).html).toContain("Donnez cette adresse")
    expect((await api("GET", at(handle, "/mastodon"))).status).toBe(404)
    const message = encodeURIComponent("<script>alert(1)</script>")
    const declined = await page(
      `${service.base}/connectors/callback?state=x&error=access_denied&error_description=${message}`,
      "en",
    )
    expect(declined.status).toBe(400)
    expect(declined.html).toContain("&lt;script&gt;")
    expect(declined.html).not.toContain("<script")
  })
})

describe.skipIf(!has("chromium"))("in a browser", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(closeContexts)

  it("connects with one click of the signed-in account holder, and only once", async () => {
    const { handle } = await makeIdentity(service.base, owner.session)
    const bot = server.world.join(`d${handle}`)
    const callback = server.allow((await begin(handle)).authorization_url, bot)
    const page = await (await browser.newContext({ locale: "de" })).newPage()
    const link = await call(service.base, "POST", "/api/auth/magic-link", { body: { email: owner.email } })
    await page.goto(link.body.dev_magic_link)
    await page.getByRole("button").click()
    await page.goto(callback)
    expect(await page.getByRole("heading").textContent()).toMatch(/^(Connect this account\?|Dieses Konto verbinden\?)$/)
    await page.getByRole("button").click()
    await page.getByText(bot.acct, { exact: false }).waitFor()
    expect((await api("GET", at(handle, "/mastodon"))).body).toMatchObject({ status: "connected", disclosed: true })
    expect(await completions(handle)).toEqual([[handle, "mastodon", "allowed", "page"]])
    await page.goto(callback)
    expect(await page.getByRole("heading").textContent()).toMatch(/no longer valid|nicht mehr gültig/)
  })
})
