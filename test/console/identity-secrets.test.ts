/** The secrets of an Identity and its deletion, without a browser: shown once, masked, and confirmed. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, problem, signedIn, source } from "./Modules.ts"

const { ShowOnce } = await source("identity/ShowOnce.tsx")
const { default: IdentityPage, SagaSteps } = await source("identity/IdentityPage.tsx")
const { default: IdentitySettingsPage } = await source("identity/IdentitySettingsPage.tsx")
const { Secret, mask } = await source("ui/Secret.tsx")
const { Removal } = await source("account/Removal.tsx")
const { client } = await source("client/Queries.ts")
const { go } = await source("router/Router.ts")

let calls: ReturnType<typeof heldCalls>
let signOut = () => {}
let entries: ReadonlyArray<string>
const copied = vi.fn()
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  vi.stubGlobal("navigator", { clipboard: { writeText: async (text: string) => copied(text) } })
  entries = await browserAt("/identities/ada")
})
afterEach(async () => {
  await leaveAll()
  copied.mockReset()
  signOut()
  client.clear()
  vi.unstubAllGlobals()
})
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("The secrets of an Identity", () => {
  const identity = { handle: "ada", email: "ada@agents.example", status: "ready" }
  const login = (host: string, port: number) => ({
    host,
    port,
    security: "tls",
    username: identity.email,
    password: "word-1",
  })
  const secrets = {
    identity_key: "svc_agent_secret",
    imap: login("imap.example", 993),
    smtp: login("smtp.example", 465),
    expires_at: "2026-11-23T09:00:00Z",
  }
  const opened = async (some: object = secrets) => {
    const forget = vi.fn()
    return { forget, ...(await drawn(ShowOnce, { identity, secrets: some, forget })) }
  }

  it("are masked in every snippet, and copied whole", async () => {
    const { top, press, fire } = await opened()
    for (const form of [".env", "MCP", "curl", "Tunnel"]) {
      await press(form)
      expect(top.textContent).not.toMatch(/svc_agent_s|word-1/)
      await fire(top.all({ class: "code" })[0]!.all("button")[0], "click")
      expect(copied.mock.calls.at(-1)![0]).toContain("svc_agent_secret")
    }
    expect(copied.mock.calls[0]![0]).toBe(
      [
        "SVC_API_URL=http://localhost",
        "SVC_KEY=svc_agent_secret",
        "AGENT_HANDLE=ada",
        "AGENT_EMAIL=ada@agents.example",
        ...["IMAP", "SMTP"].flatMap((name) => [
          `${name}_HOST=${name.toLowerCase()}.example`,
          `${name}_PORT=${name === "IMAP" ? 993 : 465}`,
          `${name}_SECURITY=tls`,
          `${name}_USER=ada@agents.example`,
          `${name}_PASSWORD=word-1`,
        ]),
      ].join("\n"),
    )
    expect(JSON.parse(copied.mock.calls[1]![0]).mcpServers["agent-ada"]).toEqual({
      type: "http",
      url: "http://localhost/api/mcp",
      headers: { Authorization: "Bearer svc_agent_secret" },
    })
    expect(copied.mock.calls[2]![0]).toContain("/api/identities/ada/messages?wait=60")
    expect(top.textContent).toContain("Nov 23")
    await press("Copy Mailbox password")
    expect(copied.mock.calls.at(-1)![0]).toBe("word-1")
  })

  it("are forgotten only after the service knows that they are stored", async () => {
    const { press, forget, top } = await opened()
    await press("I have stored them")
    const request = await answered(503, problem(503, { detail: "later" }))
    expect([request.method, request.url]).toEqual(["POST", "/api/identities/ada/identity-key/ack"])
    await eventually(() => expect(top.textContent).toContain("later"))
    expect(forget).not.toHaveBeenCalled()
    await press("I have stored them")
    await answered(204)
    await eventually(() => expect(forget).toHaveBeenCalledTimes(1))
  })

  it("are not left without a question until they are stored", async () => {
    const asked = vi.fn(() => false)
    const { draw } = await opened({ imap: secrets.imap })
    vi.stubGlobal("confirm", asked)
    go("/keys")
    expect([entries, asked.mock.calls]).toEqual([
      [],
      [["The secrets are only shown once. Leave without storing them?"]],
    ])
    await draw({ identity, secrets: {}, forget: vi.fn() })
    go("/keys")
    expect([entries, asked.mock.calls.length]).toEqual([["push /keys"], 1])
  })

  it("are replaced by a placeholder after they were stored", async () => {
    const { top, fire, button } = await opened({})
    expect(button("I have stored them")).toBeUndefined()
    await fire(top.all({ class: "code" })[0]!.all("button")[0], "click")
    expect(copied.mock.calls[0]![0]).toMatch(/SVC_KEY=\$SVC_KEY\n/)
  })

  it("are not taken for stored by the overview if reading them fails, and are shown after a retry", async () => {
    const params = { handle: "ada" }
    const tunnel = { url: "https://ada.agents.example", connected: true, port: null }
    const created_at = "2026-11-23T08:00:00Z"
    client.setQueryData(["GET /api/identities/:handle", { params }], { ...identity, created_at, tunnel })
    const mail = { params, query: { limit: 5 } }
    client.setQueryData(["GET /api/identities/:handle/messages", mail], { messages: [] })
    client.setQueryData(["GET /api/identities/:handle/webhooks", { params, query: { limit: 1 } }], { webhooks: [] })
    const { top, press } = await drawn(IdentityPage, { handle: "ada" })
    /** Answers the open reads of secrets. */
    const answer = async (status: number, body: object) => {
      for (let n = 0; n < 20 && calls.waiting() > 0; n++) {
        const request = await calls.next()
        if (request.url.endsWith("/identity-key")) await act(async () => request.answer(status, body))
      }
    }
    await answer(503, problem(503, { detail: "later" }))
    await eventually(() => expect(top.textContent).toContain("later"))
    expect(top.textContent).not.toContain("$SVC_KEY")
    await press("Try again")
    await answer(200, secrets)
    await eventually(() => expect(top.textContent).toContain("Store these secrets now"))
    expect(top.textContent).not.toContain("later")
  })
})

it.each([
  ["provisioning", "Setting up"],
  ["teardown", "Deleting"],
])("The steps of a %s have their title", async (kind, title) => {
  const { top } = await drawn(SagaSteps, { identity: { handle: "ada", saga: { kind, status: "running", steps: [] } } })
  expect(top.all("h2").map(({ textContent }) => textContent)).toEqual([title])
})

it("A secret is revealed and hidden by its button, and never read out", async () => {
  expect(["svc_admin_abc", "whsec_abc", "word-abc"].map(mask)).toEqual(
    ["svc_admin_", "whsec_", ""].map((start) => `${start}${"•".repeat(18)}`),
  )
  const { top, press } = await drawn(Secret, { value: "svc_admin_abc", what: "Key" })
  const [code] = top.all("code")
  const spoken = () => top.all({ "aria-live": "polite" })[0]!.textContent
  expect([code!.textContent, code!.attributes["aria-hidden"]]).toEqual([mask("svc_admin_abc"), "true"])
  await press("Show: Key")
  expect([code!.textContent, spoken()]).toEqual(["svc_admin_abc", "Key: shown"])
  await press("Hide: Key")
  expect([code!.textContent, spoken()]).toEqual([mask("svc_admin_abc"), "Key: hidden"])
})

describe("The settings of an Identity", () => {
  const opened = async (status = "ready") => {
    const identity = { handle: "ada", status, email: "ada@agents.example" }
    client.setQueryData(["GET /api/identities/:handle", { params: { handle: "ada" } }], identity)
    return drawn(IdentitySettingsPage, { handle: "ada" })
  }

  it("rotate the credentials only after a confirmation, and lead to the new ones", async () => {
    const { press } = await opened()
    await press("Rotate key and password")
    expect(calls.waiting()).toBe(0)
    await press("Rotate key and password")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["POST", "/api/identities/ada/identity-key/rotate"])
    await eventually(() => expect(entries).toEqual(["push /identities/ada"]))
  })

  it("rotate nothing while the Identity is being set up or deleted", async () => {
    const { button } = await opened("deleting")
    expect(button("Rotate key and password")!.attributes["disabled"]).toBe("true")
  })

  it("delete the Identity only after its name was typed, and lead to the list", async () => {
    const { press, enter, button, top } = await opened()
    client.setQueryData(["GET /api/identities", {}], { identities: [], next_cursor: null })
    await press("Delete Identity")
    const label = top.all("dialog")[0]!.all("label")[0]!.textContent
    expect(button("Delete Identity")!.attributes["disabled"]).toBe("true")
    await enter(label, "ad")
    expect(button("Delete Identity")!.attributes["disabled"]).toBe("true")
    await enter(label, " ADA ")
    await press("Delete Identity")
    const failed = await answered(409, problem(409, { detail: "busy" }))
    expect([failed.method, failed.url]).toEqual(["DELETE", "/api/identities/ada"])
    await eventually(() => expect(top.all("dialog")[0]!.textContent).toContain("busy"))
    expect(entries).toEqual([])
    await press("Delete Identity")
    await answered(202, {})
    await eventually(() => expect(entries).toEqual(["replace /identities"]))
    expect(client.getQueryState(["GET /api/identities", {}])?.isInvalidated).toBe(true)
  })
})

it("An account is deleted only after its address was typed, which the request repeats", async () => {
  signOut = await signedIn({ email: "ada@example.org" })
  const { press, enter, button, top } = await drawn(Removal, { children: "All of it" })
  const name = top.all("button")[0]!.textContent
  await press(name)
  expect(button(name)!.attributes["disabled"]).toBe("true")
  await enter(top.all("label")[0]!.textContent, "ada@example.org")
  expect([calls.waiting(), button(name)!.attributes["disabled"]]).toEqual([0, undefined])
  await press(name)
  const request = await calls.next()
  expect([request.method, request.url, request.body]).toEqual([
    "POST",
    "/api/account/deletion",
    { confirm: "ada@example.org" },
  ])
})
