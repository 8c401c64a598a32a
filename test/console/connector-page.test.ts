/** The page of a connected account, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, leavePage, problem, source } from "./Modules.ts"

const { default: ConnectorPage } = await source("connectors/ConnectorPage.tsx")
const { default: ConnectorsPage } = await source("connectors/ConnectorsPage.tsx")
const { client } = await source("client/Queries.ts")

const at = "/api/identities/ada/connectors"
let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  entries = await browserAt("/identities/ada/connectors/mastodon")
})
afterEach(leavePage)
const answered = (status: number, body?: object) => calls.answered(status, body)

const connector = {
  platform: "mastodon",
  status: "connected",
  paused: false,
  account: "ada@platform.example",
  service: "https://platform.example",
  connected_via: "oauth",
  capabilities: ["post", "notifications", "dm"],
  disclosed: true,
  polled_at: null as string | null,
  last_error: null as string | null,
  created_at: "2026-11-01T00:00:00.000Z",
}
const set = (route: string, value: object) =>
  client.setQueryData([`GET /api/identities/:handle${route}`, { params: { handle: "ada" } }], value)
const opened = async (more: object = {}, paused = false, platform = "mastodon") => {
  set("", { handle: "ada", status: "ready" })
  const other = { ...connector, platform: "bluesky", account: "other" }
  set("/connectors", { paused, connectors: [other, { ...connector, ...more }] })
  return await drawn(ConnectorPage, { handle: "ada", platform })
}
const post = (n: number, more: object = {}) => ({
  uri: `https://platform.example/${n}`,
  url: `https://platform.example/@ada/${n}` as string | null,
  author: "grace@platform.example",
  author_name: "Grace" as string | null,
  text: `post ${n}`,
  created_at: "2026-11-25T12:00:00.000Z",
  ...more,
})

describe("A connected account", () => {
  it("shows its own standing, and not that of another platform", async () => {
    const { facts, top } = await opened({ polled_at: "2026-11-25T12:00:00.000Z", last_error: "slow down" })
    expect(facts()).toMatchObject({
      Account: "ada@platform.example",
      Server: "https://platform.example",
      "Connected with": "OAuth",
      Permissions: "post, read mentions, and direct messages",
      "Last error": "slow down",
      "AI disclosure": "The profile says that the account is automated",
    })
    expect(facts()["Last checked"]).not.toBe("Never")
    expect(top.textContent).not.toContain("other")
    await leaveAll()
    client.clear()
    const never = await opened({ connected_via: "app_password", disclosed: false })
    expect(never.facts()).toMatchObject({
      "Last checked": "Never",
      "Connected with": "App password",
      "AI disclosure": "The profile does not say that the account is automated",
    })
    expect(never.facts()["Last error"]).toBeUndefined()
  })

  it.each([
    [false, "Pause", true],
    [true, "Resume", false],
  ])("is paused and resumed (paused: %s)", async (isPaused, button, paused) => {
    const page = await opened(isPaused ? { status: "paused", paused: true } : {})
    if (!isPaused) await answered(200, { posts: [], cursor: null })
    await page.press(button)
    const request = await answered(200, {})
    expect([request.method, request.url, request.body]).toEqual(["PATCH", `${at}/mastodon`, { paused }])
    expect((await calls.next()).url).toBe(at)
  })

  it("says why it cannot be paused", async () => {
    const page = await opened()
    await answered(200, { posts: [], cursor: null })
    await page.press("Pause")
    await answered(503, problem(503, { detail: "not now" }))
    await eventually(() => expect(page.top.textContent).toContain("not now"))
  })

  it("cannot be resumed alone while all Connectors of the Identity are paused", async () => {
    const { say } = await source("connectors/texts.ts")
    const all = await opened({ status: "paused" }, true)
    expect(all.button("Resume") ?? all.button("Pause")).toBeUndefined()
    expect(all.top.textContent).toContain(say("all_paused"))
    await leaveAll()
    client.clear()
    const one = await opened({ status: "paused", paused: true })
    expect(one.top.textContent).toContain(say("one_paused"))
    expect(one.top.textContent).not.toContain(say("all_paused"))
    expect(calls.waiting()).toBe(0)
  })

  it.each([
    [{ disclosed: false, last_error: "The profile at X no longer says that the account is automated." }, true],
    [{ disclosed: false, last_error: "X: token expired" }, false],
    [{ disclosed: true, last_error: "X: no longer says that the account is automated" }, false],
  ])("that stopped says how to go on: %j", async (more, isProfile) => {
    const { say } = await source("connectors/texts.ts")
    const page = await opened({ status: "stopped", account: "ada&x@platform.example", ...more })
    expect(page.top.textContent.includes(say("stopped_profile"))).toBe(isProfile)
    expect(page.top.textContent.includes(say("stopped_credential"))).toBe(!isProfile)
    const href = "/console/identities/ada/connectors/mastodon/connect?account=ada%26x%40platform.example"
    expect(page.top.all({ href })).toHaveLength(1)
    expect(page.button("Pause")).toBeUndefined()
    expect(calls.waiting()).toBe(0)
  })

  it("is disconnected after a confirmation, which leads to the list", async () => {
    const page = await opened({ status: "paused" })
    await page.press("Disconnect")
    expect(calls.waiting()).toBe(0)
    expect(page.top.textContent).toContain("ada@platform.example")
    await page.press("Disconnect")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `${at}/mastodon`])
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/connectors"]))
    expect((await calls.next()).url).toBe(at)
  })

  it("that is not connected leads to connecting it", async () => {
    const page = await opened({ platform: "other" })
    expect(page.top.all({ href: "/console/identities/ada/connectors/mastodon/connect" })).toHaveLength(1)
    expect(page.button("Disconnect")).toBeUndefined()
  })
})

describe("The posts of a connected account", () => {
  it("continue page by page with the platform's cursor", async () => {
    const page = await opened()
    const first = await answered(200, { posts: [post(1), post(2, { author_name: null })], cursor: "a/b" })
    expect(first.url).toBe(`${at}/mastodon/posts?limit=20`)
    await eventually(() => expect(page.top.textContent).toContain("post 2"))
    await page.press("Show more")
    const second = await answered(200, { posts: [post(3)], cursor: null })
    expect(second.url).toBe(`${at}/mastodon/posts?limit=20&cursor=a%2Fb`)
    await eventually(() => expect(page.top.textContent).toContain("post 3"))
    expect(page.top.textContent).toContain("post 1")
    expect(page.button("Show more")).toBeUndefined()
    expect(page.top.all("strong").map(({ textContent }) => textContent)).toEqual([
      "Grace",
      "grace@platform.example",
      "Grace",
    ])
  })

  it("show one note if the list is empty, also after a further page", async () => {
    const page = await opened()
    await answered(200, { posts: [], cursor: "more" })
    await eventually(() => expect(page.top.textContent).toContain("No posts yet"))
    await page.press("Show more")
    await answered(200, { posts: [], cursor: "last" })
    await eventually(() => expect(page.button("Show more")).toBeDefined())
    expect(page.top.textContent.split("No posts yet")).toHaveLength(2)
  })

  it.each([
    ["https://platform.example/@ada/1", 1],
    ["http://platform.example/@ada/1", 1],
    ["javascript:alert(1)", 0],
    ["data:text/html,https://x", 0],
    [null, 0],
  ])("are linked if their address is one of the web: %s", async (url, links) => {
    const page = await opened()
    await answered(200, { posts: [post(1, { url })], cursor: null })
    await eventually(() => expect(page.top.textContent).toContain("post 1"))
    expect(page.top.all({ rel: "noopener noreferrer" })).toHaveLength(links)
    expect(page.top.all({ href: String(url) })).toHaveLength(links)
  })

  it("include mentions and direct messages if the account has these capabilities", async () => {
    const page = await opened()
    await answered(200, { posts: [], cursor: null })
    await page.press("Mentions & replies")
    expect(entries.at(-1)).toContain("view=heard")
    const notifications = ["reply", "mention"].map((kind, n) => ({ kind, post: post(n), at: "" }))
    const heard = await answered(200, { notifications, cursor: "h" })
    expect(heard.url).toBe(`${at}/mastodon/notifications?limit=20`)
    const tags = () => page.top.all({ class: "tag" }).map(({ textContent }) => textContent)
    await eventually(() => expect(tags()).toEqual(["Reply", "Mention"]))
    await page.press("Show more")
    expect((await answered(200, { notifications: [], cursor: null })).url).toContain("cursor=h")
    expect(page.top.all("textarea")).toHaveLength(0)
    await page.press("Direct messages")
    const dms = await answered(200, { posts: [post(2)], cursor: null })
    expect(dms.url).toBe(`${at}/mastodon/dms?limit=20`)
    await eventually(() => expect(page.top.textContent).toContain("post 2"))
    expect(page.top.all({ class: "tag" })).toHaveLength(0)
    await page.press("Posts")
    expect(entries.at(-1)).not.toContain("view")
    await leaveAll()
    client.clear()
    await browserAt("/identities/ada/connectors/mastodon?view=dms")
    const less = await opened({ capabilities: ["thread"] })
    expect((await answered(200, { posts: [], cursor: null })).url).toBe(`${at}/mastodon/posts?limit=20`)
    expect([less.button("Mentions & replies"), less.button("Direct messages")]).toEqual([undefined, undefined])
    expect(less.top.all("textarea")).toHaveLength(0)
  })

  it("begin with a post of the person, which is sent once and then read again", async () => {
    const page = await opened()
    await answered(200, { posts: [], cursor: null })
    await page.enter("New post", "hello")
    await page.submit()
    const sent = await answered(200, {})
    expect([sent.method, sent.url, sent.body]).toEqual(["POST", `${at}/mastodon/posts`, { text: "hello" }])
    expect(sent.headers["idempotency-key"]).toBeDefined()
    expect((await calls.next()).url).toBe(`${at}/mastodon/posts?limit=20`)
    expect(page.field("New post")!.attributes["value"] ?? "").toBe("")
  })
})

describe("The list of Connectors", () => {
  const listed = async (connectors: ReadonlyArray<object>, paused = false) => {
    await leaveAll()
    set("", { handle: "ada", status: "ready" })
    set("/connectors", { paused, connectors })
    const { top, ...shown } = await drawn(ConnectorsPage, { handle: "ada" })
    const line = (platform: string) => top.all({ class: "connector", "data-platform": platform })[0]!
    const links = (platform: string) =>
      line(platform)
        .all("a")
        .map(({ attributes }) => attributes["href"]!.replace("/console/identities/ada/connectors", ""))
    return { ...shown, top, line, links }
  }

  it("leads to each account, or to connecting it, and shows the errors of each", async () => {
    const polled = { polled_at: "2026-11-25T12:00:00.000Z", last_error: "slow down" }
    const { line, links } = await listed([{ ...connector, status: "paused", ...polled }])
    expect([links("mastodon"), links("bluesky")]).toEqual([["/mastodon"], ["/bluesky/connect"]])
    expect(["ada@platform.example", "slow down"].map((text) => line("mastodon").textContent.includes(text))).toEqual([
      true,
      true,
    ])
    expect(
      line("mastodon")
        .all("time")
        .map(({ attributes }) => attributes["dateTime"]),
    ).toEqual([polled.polled_at])
    expect(line("bluesky").textContent).not.toContain("ada@platform.example")
    const stopped = await listed([{ ...connector, status: "stopped", account: "a&b@x.example" }])
    expect(stopped.links("mastodon")).toEqual(["/mastodon", "/mastodon/connect?account=a%26b%40x.example"])
  })

  it.each([false, true])("pauses and resumes all at once (paused: %s), and says why if that fails", async (paused) => {
    const { say } = await source("connectors/texts.ts")
    const names = [say("pause_all"), say("resume_all")]
    const isPaused = ({ button, top }: Awaited<ReturnType<typeof listed>>) => {
      expect(top.textContent.includes(say("all_paused"))).toBe(button(names[1]!) !== undefined)
      return names.map((name) => button(name) !== undefined)
    }
    // Resuming is also offered without accounts, and then no longer once the page shows the wanted state.
    const connectors = paused ? [] : [connector]
    const page = await listed(connectors, paused)
    expect(isPaused(page)).toEqual([!paused, paused])
    await page.press(names[paused ? 1 : 0]!)
    // The page shows the wanted state before the service has responded.
    await eventually(() => expect(isPaused(page)).toEqual([false, !paused]))
    const request = await answered(503, problem(503, { detail: "not now" }))
    expect([request.method, request.url, request.body]).toEqual(["PATCH", at, { paused: !paused }])
    await answered(200, { paused, connectors })
    await eventually(() => expect(page.top.textContent).toContain("not now"))
    expect(isPaused(page)).toEqual([!paused, paused])
    expect((await listed([])).button(names[0]!)).toBeUndefined()
  })
})
