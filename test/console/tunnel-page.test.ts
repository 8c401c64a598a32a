/** The page of a Tunnel, without a browser: what it shows, and which settings it sends. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, problem, source } from "./Modules.ts"

const { default: TunnelPage } = await source("tunnel/TunnelPage.tsx")
const { client } = await source("client/Queries.ts")
const { storeUnsavedFor, unsavedWith } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  // The charts are loaded when the browser is idle.
  vi.stubGlobal("requestIdleCallback", () => 0)
  vi.stubGlobal("cancelIdleCallback", () => {})
  storeUnsavedFor("account")
  await browserAt("/identities/ada/tunnel")
})
afterEach(async () => {
  await leaveAll()
  storeUnsavedFor(undefined)
  client.clear()
  vi.unstubAllGlobals()
})

const settings = {
  host_header: "preserve",
  tls: "terminate",
  allowed_networks: [] as ReadonlyArray<string>,
  callers: "anyone" as string | ReadonlyArray<string>,
  basic_auth: null as { username: string } | null,
  proxy_protocol: false,
}
const tunnel = {
  connected: false,
  url: "https://ada.tunnel.example",
  hostname: "ada.tunnel.example",
  port: 20_001 as number | null,
  links: [] as ReadonlyArray<object>,
  usage: { bytes_in: 2_000, bytes_out: 3_000_000, requests: 12, since: "2026-11-01T00:00:00.000Z" },
  settings,
}
const opened = async (more: object = {}, changed: object = {}) => {
  const set = (route: string, value: object) =>
    client.setQueryData([`GET /api/identities/:handle${route}`, { params: { handle: "ada" } }], value)
  set("", { handle: "ada", status: "ready" })
  set("/tunnel", { ...tunnel, ...more, settings: { ...settings, ...changed } })
  return await drawn(TunnelPage, { handle: "ada" })
}
type Shown = Awaited<ReturnType<typeof opened>>
/** Saves the form, and returns the body of the request. */
const saved = async ({ submit }: Shown) => {
  await submit()
  const request = await calls.next()
  expect([request.method, request.url]).toEqual(["PATCH", "/api/identities/ada/tunnel"])
  await act(async () => request.answer(200, {}))
  return request.body
}
const labels = ({ top }: Shown) => top.all("label").map(({ textContent }) => textContent)
const unchanged = {
  host_header: "preserve",
  tls: "terminate",
  allowed_networks: [],
  callers: "anyone",
  proxy_protocol: false,
  basic_auth: null,
}

describe("The page of a Tunnel", () => {
  it("shows the address, the command to connect, and the usage", async () => {
    const { top, facts } = await opened()
    expect(facts()).toMatchObject({ Requests: "12" })
    expect([facts()["URL"], facts()["TCP"]]).toEqual([
      expect.stringContaining("https://ada.tunnel.example"),
      expect.stringContaining("ada.tunnel.example:20001"),
    ])
    expect([facts()["Received"], facts()["Sent"]]).toEqual([
      expect.stringMatching(/^2.?k?B?/),
      expect.stringMatching(/^3/),
    ])
    expect(top.textContent).toContain(
      "SVC_API_URL=http://localhost SVC_KEY=$SVC_KEY npm run -s svc -- tunnel 3000 --handle ada",
    )
    expect(top.all("table")).toHaveLength(0)
    expect(top.all({ href: tunnel.url })).toHaveLength(0)
  })

  it("shows the connections of the agent in place of the command, and omits the TCP port of a Tunnel without one", async () => {
    const links = [{ edge: "edge-1", since: "2026-11-25T12:00:00.000Z", client: "svc/1.0" }]
    const { top, facts } = await opened({ connected: true, links, port: null })
    expect(facts()["TCP"]).toBeUndefined()
    // The agent's site learns nothing of the console.
    expect(top.all({ href: tunnel.url, rel: "noopener noreferrer" })).toHaveLength(1)
    expect(top.textContent).not.toContain("npm run")
    const row = top.all("tr").at(-1)!.textContent
    for (const word of ["svc/1.0", "edge-1"]) expect(row).toContain(word)
  })

  it.each([
    [true, 5_000],
    [false, false],
  ])("is read again every five seconds only while the Tunnel is connected: %s", async (connected, interval) => {
    await opened({ connected })
    const queryKey = ["GET /api/identities/:handle/tunnel", { params: { handle: "ada" } }]
    const query = client.getQueryCache().find({ queryKey })
    expect(query.observers[0].options.refetchInterval(query)).toBe(interval)
  })
})

describe("The settings of a Tunnel", () => {
  it("are sent unchanged if nothing was edited", async () => {
    expect(await saved(await opened())).toEqual(unchanged)
  })

  it("are sent as they were entered", async () => {
    const page = await opened()
    const { enter, check } = page
    await enter("Host header", " app.example ")
    await enter("TLS", "passthrough")
    await enter("Allowed IP addresses", " 192.0.2.0/24,\n\n2001:db8::/32 ")
    await enter("Callers", "listed")
    await enter("Agents", "https://agent.example\nbob,")
    await check("Send a PROXY protocol header on TCP connections", true)
    await check("Require a password", true)
    await enter("User name", "me")
    await enter("Password", "secret word")
    const [[, unsaved]] = unsavedWith("tunnel:ada")
    expect(unsaved).toMatchObject({ username: "me" })
    expect(JSON.stringify(localStorage)).not.toContain("secret word")
    expect(await saved(page)).toEqual({
      host_header: "app.example",
      tls: "passthrough",
      allowed_networks: ["192.0.2.0/24", "2001:db8::/32"],
      callers: ["https://agent.example", "bob"],
      proxy_protocol: true,
      basic_auth: { username: "me", password: "secret word" },
    })
    await eventually(() => expect(page.field("Password")?.attributes["value"] ?? "").not.toContain("secret"))
  })

  it("begin with the stored ones", async () => {
    const page = await opened(
      {},
      {
        allowed_networks: ["192.0.2.1", "192.0.2.2"],
        callers: ["https://agent.example", "bob"],
        basic_auth: { username: "me" },
        proxy_protocol: true,
      },
    )
    const body = await saved(page)
    // The user is unchanged, so the stored password stays.
    expect(body).toEqual({
      ...unchanged,
      allowed_networks: ["192.0.2.1", "192.0.2.2"],
      callers: ["https://agent.example", "bob"],
      proxy_protocol: true,
      basic_auth: undefined,
    })
    expect(Object.keys(body)).not.toContain("basic_auth")
  })

  it.each([
    ["signed", "signed"],
    ["anyone", "anyone"],
  ])("admit %s without a list of agents", async (chosen, callers) => {
    const page = await opened({}, { callers: ["bob"] })
    await page.enter("Callers", chosen)
    expect(labels(page)).not.toContain("Agents")
    expect((await saved(page)).callers).toBe(callers)
  })

  it("change a stored password, or the user that it belongs to, and remove both", async () => {
    const stored = { basic_auth: { username: "me" } }
    const kept = "A password is set. Enter a new one to change it."
    const changed = await opened({}, stored)
    expect(changed.top.textContent).toContain(kept)
    expect(changed.field("Password")!.attributes["required"]).toBeUndefined()
    await changed.enter("Password", "new")
    expect((await saved(changed)).basic_auth).toEqual({ username: "me", password: "new" })
    await leaveAll()
    client.clear()

    const renamed = await opened({}, stored)
    await renamed.enter("User name", "other")
    expect(renamed.top.textContent).not.toContain(kept)
    expect(renamed.field("Password")!.attributes["required"]).toBeDefined()
    await renamed.enter("Password", "new")
    expect((await saved(renamed)).basic_auth).toEqual({ username: "other", password: "new" })
    await leaveAll()
    client.clear()

    const removed = await opened({}, stored)
    await removed.check("Require a password", false)
    expect(labels(removed)).not.toContain("User name")
    expect((await saved(removed)).basic_auth).toBe(null)
  })

  it("do not keep the password of another user, which the service refuses to be empty", async () => {
    const page = await opened({}, { basic_auth: { username: "me" } })
    await page.enter("User name", "other")
    expect((await saved(page)).basic_auth).toEqual({ username: "other", password: "" })
  })

  it("are read again after they were saved, and a refusal is shown at its field", async () => {
    const page = await opened({}, { callers: ["a"] })
    await page.enter("Allowed IP addresses", "x")
    await page.submit()
    const refused = await calls.next()
    const errors = [
      { path: "/allowed_networks/0", message: "not a network" },
      { path: "/callers/0", message: "not an agent" },
    ]
    await act(async () => refused.answer(400, problem(400, { errors })))
    const wrong = () => page.top.all({ class: "wrong" }).map(({ textContent }) => textContent)
    await eventually(() => expect(new Set(wrong())).toEqual(new Set(["not a network", "not an agent"])))
    expect(calls.waiting()).toBe(0)
    await page.enter("Allowed IP addresses", "192.0.2.1")
    await saved(page)
    const read = await calls.next()
    expect([read.method, read.url]).toEqual(["GET", "/api/identities/ada/tunnel"])
  })
})
