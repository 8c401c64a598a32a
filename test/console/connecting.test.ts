/** An authorization of a platform that this browser began, without a browser: what completes it, and what never does. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, problem, source } from "./Modules.ts"

const { begin, begunAs, forget } = await source("connectors/PendingAuthorization.ts")
const { default: CallbackPage } = await source("connectors/CallbackPage.tsx")
const { default: ConnectPage } = await source("connectors/ConnectPage.tsx")
const { aboutOf, disclosureOf, titleOf } = await source("connectors/Platforms.tsx")
const { client } = await source("client/Queries.ts")
const { storeUnsavedFor } = await source("client/Unsaved.ts")

const begun = { state: "s1", handle: "ada", platform: "bluesky", apply_disclosure: false }
let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
const gone: Array<string> = []
/** Opens a path, and notes the addresses for which the page is left. */
const at = async (path: string) => {
  entries = await browserAt(path)
  const leave = (to: unknown) => void gone.push(String(to))
  Object.assign(location, { assign: leave, replace: leave })
}
beforeEach(() => {
  calls = heldCalls()
  gone.length = 0
  vi.stubGlobal("localStorage", new Entries())
  storeUnsavedFor("org")
  vi.stubGlobal("document", {})
})
afterEach(async () => {
  await leaveAll()
  storeUnsavedFor(undefined)
  client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("An authorization", () => {
  it("is known by its state for 15 minutes, until it is forgotten", async () => {
    await at("/")
    vi.useFakeTimers({ toFake: ["Date"] })
    begin(begun, "https://platform.example/authorize?state=s1")
    expect([gone, document.cookie]).toEqual([
      ["https://platform.example/authorize?state=s1"],
      "svc_connecting=s1; Path=/connectors; Max-Age=900; SameSite=Lax",
    ])
    expect([begunAs("s1"), begunAs("s2"), begunAs(null)]).toEqual([
      expect.objectContaining(begun),
      undefined,
      undefined,
    ])
    vi.advanceTimersByTime(15 * 60_000 - 1)
    expect(begunAs("s1")).toMatchObject(begun)
    vi.advanceTimersByTime(1)
    expect(begunAs("s1")).toBeUndefined()
    begin(begun, "http://localhost/authorize")
    forget()
    expect([begunAs("s1"), document.cookie]).toEqual([
      undefined,
      "svc_connecting=; Path=/connectors; Max-Age=0; SameSite=Lax",
    ])
  })

  it("never opens an address that is not of the web", async () => {
    await at("/")
    expect(() => begin(begun, "javascript:alert(1)")).toThrow("no address")
    expect([gone, begunAs("s1")]).toEqual([[], undefined])
  })

  it("is completed by the callback of its own state, with the disclosure that the person chose", async () => {
    await at("/connectors/callback?code=c&state=s1")
    begin(begun, "https://platform.example/")
    const standing = ["GET /api/identities/:handle/connectors", { params: { handle: "ada" } }]
    client.setQueryData(standing, { paused: false, connectors: [] })
    const { top } = await drawn(CallbackPage, {})
    expect([top.all("h1")[0]!.textContent, top.all("a")]).toEqual(["Connecting the account", []])
    expect(top.all({ class: "skeleton" }).length).toBe(1)
    const request = await answered(200, { account: "ada.example", platform: "bluesky" })
    expect([request.method, request.url, request.body]).toEqual([
      "POST",
      "/api/connectors/callback",
      { callback: "?code=c&state=s1", apply_disclosure: false },
    ])
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/connectors/bluesky"]))
    // The list of accounts is read again.
    expect(client.getQueryState(standing)?.isInvalidated).toBe(true)
    expect(begunAs("s1")).toBeUndefined()
  })

  it("of another browser is only completed after a question of the service", async () => {
    await at("/connectors/callback?code=c&state=other")
    begin(begun, "https://platform.example/")
    gone.length = 0
    await drawn(CallbackPage, {})
    expect([gone, calls.waiting()]).toEqual([["/auth/connectors/callback?code=c&state=other"], 0])
  })

  it("that was declined is not completed, and shows the reason", async () => {
    await at("/connectors/callback?error=access_denied&error_description=No&state=s1")
    begin(begun, "https://platform.example/")
    const { top } = await drawn(CallbackPage, {})
    expect([calls.waiting(), begunAs("s1")]).toEqual([0, undefined])
    expect(top.all("bdi").map(({ textContent }) => textContent)).toEqual(["No"])
    expect(top.all("a").map(({ attributes }) => attributes["href"])).toEqual(
      ["/bluesky/connect", ""].map((to) => `/console/identities/ada/connectors${to}`),
    )
    expect([top.all("h1")[0]!.textContent, top.all({ class: "skeleton" })]).toEqual([
      "The account was not connected",
      [],
    ])
    await leaveAll()
    await at(`/connectors/callback?error=${"access_denied".padEnd(301, ".")}&state=s1`)
    begin(begun, "https://platform.example/")
    const short = await drawn(CallbackPage, {})
    expect([calls.waiting(), short.top.all("bdi")[0]!.textContent]).toEqual([0, "access_denied".padEnd(300, ".")])
  })

  it("that failed shows why", async () => {
    await at("/connectors/callback?code=c&state=s1")
    begin(begun, "https://platform.example/")
    const { top } = await drawn(CallbackPage, {})
    await answered(409, problem(409, { detail: "expired" }))
    await eventually(() => expect(top.textContent).toContain("expired"))
    expect(entries).toEqual([])
  })
})

describe("The form that connects an account", () => {
  const opened = async (platform: string, search = "") => {
    await at(`/identities/ada/connectors/${platform}/connect${search}`)
    client.setQueryData(["GET /api/identities/:handle", { params: { handle: "ada" } }], {
      handle: "ada",
      status: "ready",
    })
    return drawn(ConnectPage, { handle: "ada", platform })
  }
  const start = (rules: ReadonlyArray<object>) => ({
    authorization_url: "https://social.example/oauth",
    state: "s2",
    instance_rules: rules,
  })

  it.each([
    ["mastodon", "Connect Mastodon", "Server or account", /^For example example\.social or/, /bio\. Both/],
    ["bluesky", "Connect Bluesky", "Account", /Leave empty to choose/, /^Adds the label “bot”/],
  ])("says what to enter and what is added to the profile: %s", async (platform, title, label, hint, disclosure) => {
    const { top, press, field } = await opened(platform)
    const hints = () => top.all({ class: "hint" }).map(({ textContent }) => textContent)
    expect([top.all("h2")[0]!.textContent, field(label)]).toEqual([title, expect.anything()])
    expect(hints()).toEqual([expect.stringMatching(hint), expect.stringMatching(disclosure)])
    expect(top.all("a").at(-1)!.attributes["href"]).toBe("/console/identities/ada/connectors")
    if (platform === "mastodon") return
    await press("Use an app password")
    expect(hints().slice(0, 2)).toEqual(["For example ada.bsky.social.", expect.stringMatching(/^Create one in/)])
    expect(field("Account")!.attributes["required"]).toBe("true")
  })

  it("of an unknown platform does not exist, and a further platform is described by its name", async () => {
    const { top } = await opened("other")
    expect([top.all("form"), top.textContent.includes("Not connected")]).toEqual([[], true])
    expect([titleOf, aboutOf, disclosureOf].map((of) => of("threads"))).toEqual([
      "Threads",
      "Posts, replies and mentions of an account on Threads.",
      "Adds one line to the profile, and the platform’s own bot label if it has one.",
    ])
  })

  it("shows the rules of a server before it opens the server, and keeps the choice of disclosure", async () => {
    const { enter, check, submit, top, press } = await opened("mastodon")
    await enter(top.all("label")[0]!.textContent, " social.example ")
    await check(top.all("label").at(-1)!.textContent, false)
    await submit()
    const rules = [
      { id: "1", text: "Be kind", hint: null },
      { id: "2", text: "Be honest", hint: "No spam" },
    ]
    const request = await answered(200, start(rules))
    expect([request.method, request.url, request.body]).toEqual([
      "POST",
      "/api/identities/ada/connectors/mastodon/authorize",
      { account: "social.example" },
    ])
    const shown = () => top.all("li").map(({ textContent }) => textContent)
    await eventually(() => expect(shown()).toEqual(["Be kind", "Be honestNo spam"]))
    expect(top.all("h2")[0]!.textContent).toBe("Rules of social.example")
    await press("Cancel")
    expect(shown()).toEqual([])
    expect(top.all({ type: "text" })[0]!.attributes).toMatchObject({ required: "true", value: " social.example " })
    await submit()
    await answered(200, start(rules.slice(1)))
    await eventually(() => expect(shown()).toHaveLength(1))
    expect(gone).toEqual([])
    await press(top.all({ "data-kind": "primary" })[0]!.textContent)
    expect([gone, begunAs("s2")]).toEqual([
      ["https://social.example/oauth"],
      expect.objectContaining({ handle: "ada", platform: "mastodon", apply_disclosure: false }),
    ])
  })

  it("opens a server without rules immediately, for the account to connect again", async () => {
    const { submit } = await opened("bluesky", "?account=ada.example")
    await submit()
    expect((await answered(200, start([]))).body).toEqual({ account: "ada.example" })
    await eventually(() => expect(gone).toEqual(["https://social.example/oauth"]))
    expect(begunAs("s2")).toMatchObject({ apply_disclosure: true })
  })

  it("sends no account if none was entered, where the platform asks for it", async () => {
    const { submit, top } = await opened("bluesky")
    expect(top.all({ type: "text" })[0]!.attributes["required"]).not.toBe("true")
    await submit()
    expect((await answered(200, start([]))).body).toEqual({})
  })

  it("sends an app password only for Bluesky, never stores it, and shows its error at its field", async () => {
    const { check, enter, press, submit, top } = await opened("bluesky")
    const labels = () => top.all("label").map(({ textContent }) => textContent)
    const before = labels().length
    await press(top.all({ "aria-pressed": "false" })[0]!.textContent)
    expect(labels().length).toBe(before + 1)
    await enter(labels()[0]!, "ada.example")
    await enter(labels()[1]!, " abcd-efgh ")
    const stored = JSON.stringify(localStorage)
    expect([stored.includes("ada.example"), stored.includes("abcd")]).toEqual([true, false])
    await submit()
    const request = await answered(422, problem(422, { errors: [{ path: "/app_password", message: "wrong one" }] }))
    expect([request.method, request.url, request.body]).toEqual([
      "PUT",
      "/api/identities/ada/connectors/bluesky",
      { account: "ada.example", app_password: "abcd-efgh", apply_disclosure: true },
    ])
    await eventually(() => expect(top.all({ class: "wrong" })[0]?.textContent).toBe("wrong one"))
    expect(top.all({ type: "password" })[0]!.attributes["aria-invalid"]).toBe("true")
    await check(labels().at(-1)!, false)
    await submit()
    const list = ["GET /api/identities/:handle/connectors", { params: { handle: "ada" } }]
    client.setQueryData(list, { paused: false, connectors: [] })
    expect((await answered(200, {})).body).toMatchObject({ account: "ada.example", apply_disclosure: false })
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/connectors/bluesky"]))
    expect(client.getQueryState(list)?.isInvalidated).toBe(true)
  })
})
