/** The settings of an account, without a browser: what is sent, which session ends, and what a failure leaves. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, problem, signedIn, source } from "./Modules.ts"

// The appearance is applied to the document when its module is loaded.
vi.stubGlobal("document", { documentElement: { dataset: {} } })
await source("shell/Look.tsx")
vi.unstubAllGlobals()
const { default: SettingsPage } = await source("settings/SettingsPage.tsx")
const { default: DataPage } = await source("settings/DataPage.tsx")
const { default: TermsPage } = await source("settings/TermsPage.tsx")
const { state } = await source("client/Session.ts")
const { default: LimitsPage } = await source("settings/LimitsPage.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")
const { language } = await source("texts/Texts.ts")

const org = { id: "org_1", email: "ada@example.org", created_at: "2026-01-01T00:00:00Z", api_version: "2026-02-01" }
let calls: ReturnType<typeof heldCalls>
let signOut = () => {}
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/settings")
  signOut = await signedIn({ ...org, language: "en" })
  const versions = ["2026-01-01", "2026-02-01", "2026-03-01"].map((version) => ({ version }))
  client.setQueryData(["GET /api/versions", {}], { newest: "2026-03-01", versions })
  const identities = [{ handle: "ada", status: "ready" }]
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
})
afterEach(async () => {
  await leaveAll()
  signOut()
  client.clear()
  vi.unstubAllGlobals()
})
const answered = (status: number, body?: object) => calls.answered(status, body)

const session = (id: string, user_agent: string | null, current = false) => ({
  id,
  user_agent,
  current,
  created_at: "2026-11-20T08:00:00Z",
  last_used_at: "2026-11-20T08:00:00Z",
})
const sessions = [
  session("ses_1", "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0 Safari/537.36", true),
  session("ses_2", "Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0"),
  session("ses_3", null),
  session("ses_5", "Mozilla/5.0 (Linux; Android 16) Chrome/140.0 Mobile Safari/537.36"),
  session("ses_4", "curl/8.0"),
]
const opened = async () => {
  const shown = await drawn(SettingsPage, {})
  expect((await answered(200, { sessions, next_cursor: null })).url).toBe("/api/auth/sessions?limit=50")
  await eventually(() => expect(shown.top.all("tr").length).toBe(sessions.length + 1))
  return shown
}

it("A session is ended by its own button, and the current one has none", async () => {
  const { top, press } = await opened()
  const rows = top
    .all("tr")
    .slice(1)
    .map((row) => [row.all("td")[0]!.textContent, row.all("button")[0]?.attributes["aria-label"]])
  expect(rows).toEqual([
    ["Chrome · Linux", undefined],
    ["Edge · Windows", "Sign out: Edge · Windows"],
    ["Unknown", "Sign out: Unknown"],
    ["Chrome · Android", "Sign out: Chrome · Android"],
    ["curl/8.0", "Sign out: curl/8.0"],
  ])
  await press("Sign out: Unknown")
  const request = await answered(204)
  expect([request.method, request.url]).toEqual(["DELETE", "/api/auth/sessions/ses_3"])
  expect((await calls.next()).url).toBe("/api/auth/sessions?limit=50")
})

it.each([
  [undefined, "end"],
  [false, "keep"],
  [true, "end"],
])(
  "Signing out everywhere asks first, and ends the access of apps unless a person keeps it: %s",
  async (apps, sent) => {
    const { top, press, fire } = await opened()
    await press("Sign out everywhere")
    expect(calls.waiting()).toBe(0)
    const [box] = top.all("dialog")[0]!.all("input")
    if (apps !== undefined) await fire(box, "change", { currentTarget: { checked: apps } })
    await press("Sign out everywhere")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `/api/auth/sessions?apps=${sent}`])
    const own = await calls.next()
    expect([own.method, own.url]).toEqual(["DELETE", "/api/auth/session"])
  },
)

it("The language changes before the service responds, and changes back if the service does not store it", async () => {
  const { enter, top } = await opened()
  await enter("Language", "de")
  expect(language.value).toBe("de")
  const request = await answered(503, problem(503, { detail: "later" }))
  expect([request.method, request.url, request.body]).toEqual(["PATCH", "/api/account", { language: "de" }])
  await eventually(() => expect(language.value).toBe("en"))
  expect(top.textContent).toContain("later")
})

it("The version of the API is chosen from the versions that the service knows, newest first", async () => {
  const { enter, field } = await opened()
  const label = "API version"
  expect(
    field(label)!
      .all("option")
      .map(({ attributes }) => attributes["value"]),
  ).toEqual(["2026-03-01", "2026-02-01", "2026-01-01"])
  const texts = field(label)!
    .all("option")
    .map(({ textContent }) => textContent)
  expect(texts.map((text) => text.includes("newest"))).toEqual([true, false, false])
  expect(field(label)!.attributes["value"]).toBe("2026-02-01")
  await enter(label, "2026-03-01")
  expect((await calls.next()).body).toEqual({ api_version: "2026-03-01" })
})

it("A version of the API that the service no longer lists stays chosen", async () => {
  client.setQueryData(["GET /api/versions", {}], { newest: "2026-03-01", versions: [{ version: "2026-03-01" }] })
  const { field } = await opened()
  const values = field("API version")!
    .all("option")
    .map(({ attributes }) => attributes["value"])
  expect(values).toContain("2026-02-01")
})

it.each([
  ["2", "1", true],
  ["2", "2", false],
  ["10", "9", true],
])("Version %s of the terms can be accepted after version %s: %s", async (current_version, accepted_version, can) => {
  const tos = { current_version, accepted_version, accepted_at: "2026-01-01T00:00:00Z", effective_at: null }
  state.value = { is: "in", session: { org, tos } }
  const { press, button } = await drawn(TermsPage, {})
  const name = `Accept version ${current_version}`
  expect(button(name) !== undefined).toBe(can)
  if (!can) return
  await press(name)
  const { url, body } = await calls.next()
  expect([url, body]).toEqual(["/api/auth/tos/acceptance", { version: current_version }])
})

it("An export is of everything or of one Identity, and can be downloaded only when it is ready", async () => {
  const one = (id: string, status: string, more: object = {}) => ({
    id,
    status,
    identity: null,
    size: null,
    created_at: "2026-11-20T08:00:00Z",
    expires_at: "2026-11-27T08:00:00Z",
    ...more,
  })
  const { top, submit, enter } = await drawn(DataPage, {})
  const exports = [
    one("exp_1", "queued"),
    one("exp_2", "ready", { identity: "ada", size: 1_400_000 }),
    one("exp_3", "failed"),
  ]
  await answered(200, { exports, next_cursor: null })
  await eventually(() => expect(top.all("tr").length).toBe(4))
  const rows = top.all("tr").slice(1)
  expect(rows.map((row) => row.all("a").map(({ attributes }) => attributes["href"]))).toEqual([
    [],
    ["/api/exports/exp_2/archive"],
    [],
  ])
  expect(rows.map((row) => row.all("td")[0]!.textContent)).toEqual(["Everything", "@ada", "Everything"])
  expect(rows[1]!.textContent).toContain("1.4 MB")
  const times = rows[1]!.all("time").map(({ attributes }) => attributes["dateTime"])
  expect(times).toEqual(["2026-11-20T08:00:00Z", "2026-11-27T08:00:00Z"])
  await submit()
  const request = await answered(202, {})
  expect([request.method, request.url, request.body]).toEqual(["POST", "/api/exports", {}])
  await answered(200, { exports, next_cursor: null })
  const label = top.all("label")[0]!.textContent
  await enter(label, "ada")
  await eventually(() => expect(top.all({ "aria-busy": "true" }).length).toBe(0))
  await submit()
  // Exports that are made are read again meanwhile.
  await vi.waitFor(() => expect(calls.all.at(-1)!.method).toBe("POST"))
  expect(calls.all.at(-1)!.body).toEqual({ identity: "ada" })
})

it("A limit says how much of it is used, of which Identity, and when it is reached or almost reached", async () => {
  const use = (name: string, used: number, limit: number, more: object = {}) => ({
    name,
    used,
    limit,
    unit: "calls",
    window: "minute",
    resets_at: "2026-11-20T08:01:00Z",
    identity: null,
    ...more,
  })
  const bytes = { unit: "bytes", window: null, resets_at: null }
  const { top } = await drawn(LimitsPage, {})
  const read = await calls.next()
  expect(read.url).toBe("/api/limits")
  await act(async () =>
    read.answer(200, {
      limits: [
        use("calls", 600, 600),
        use("identity_create", 8, 10),
        use("handle_check", 0, 60),
        use("identity_quota", 0, 0, { unit: "identities", window: null, resets_at: null }),
        use("mail_hourly", 79, 100, { unit: "messages", window: "hour", identity: "ada" }),
        use("mailbox_bytes", 1024 ** 2, 1024 ** 3, { ...bytes, identity: "ada" }),
        use("mailbox_bytes", 1024 ** 3, 1024 ** 3, { ...bytes, identity: "bob" }),
      ],
    }),
  )
  await eventually(() => expect(top.all({ role: "meter" })).toHaveLength(7))
  const rows = top
    .all({ class: "box rows limits" })[0]!
    .all("li")
    .map(({ textContent }) => textContent)
  const state = (text: string) => /Limit reached|Almost reached/.exec(text)?.[0]
  expect(rows.map(state)).toEqual(["Limit reached", "Almost reached", undefined, "Limit reached"])
  expect(rows.map((text) => text.includes("Resets"))).toEqual([true, true, false, false])
  expect(rows[0]).toContain("600 of 600 per minute")
  const cells = top
    .all("tr")
    .slice(1)
    .map((row) => row.all("td").map(({ textContent }) => textContent))
  expect(cells.map(([handle, mail, size]) => [handle, state(mail!), state(size!)])).toEqual([
    ["ada", undefined, undefined],
    ["bob", undefined, "Limit reached"],
  ])
  expect([cells[0]![1], cells[0]![2], cells[1]![1]]).toEqual(["79 of 100 per hour", "1 MiB of 1 GiB", ""])
  const shares = top.all({ role: "meter" }).map(({ attributes }) => Number(attributes["aria-valuenow"]))
  expect(shares).toEqual([100, 80, 0, 100, 79, 0, 100])
})

it.each(["light", "dark", "system"])(
  "The chosen appearance is applied when the console is opened again: %s",
  async (chosen) => {
    const documentElement = { dataset: {} }
    vi.stubGlobal("document", { documentElement })
    localStorage.setItem("svc-look", chosen)
    // The query makes another instance of the module, which reads the stored choice when it is loaded.
    const { look } = await source(`shell/Look.tsx?${chosen}`)
    expect([look.value, documentElement.dataset]).toEqual([chosen, chosen === "system" ? {} : { look: chosen }])
  },
)
