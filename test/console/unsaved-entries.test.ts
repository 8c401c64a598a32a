/** When input that is not saved yet leaves the browser's storage. */
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, heldCalls, leavePage, source } from "./Modules.ts"

const { deleteAllUnsaved, maySignOut, storeUnsavedFor, unsavedInput, unsavedWith } = await source("client/Unsaved.ts")

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal("localStorage", new Entries())
})
afterEach(async () => {
  await leavePage()
  storeUnsavedFor(undefined)
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const stored = () => unsavedWith("").map(([name]: readonly [string]) => name)
const signInAgain = () => {
  storeUnsavedFor(undefined)
  storeUnsavedFor("ada")
}

it("Input that is not saved is kept for 30 days", () => {
  storeUnsavedFor("ada")
  expect(unsavedInput("older").write("Dear Bob")).toBe(true)
  vi.advanceTimersByTime(86_400_000)
  expect(unsavedInput("newer").write("Dear Eve")).toBe(true)
  vi.advanceTimersByTime(29 * 86_400_000)
  signInAgain()
  expect(stored()).toEqual(["older", "newer"])
  vi.advanceTimersByTime(1)
  signInAgain()
  expect(stored()).toEqual(["newer"])
})

it("Input that is not saved is that of one account, and none is stored without one", () => {
  storeUnsavedFor("ada")
  unsavedInput("reply").write("Dear Bob")
  storeUnsavedFor("bob")
  expect(stored()).toEqual([])
  expect(unsavedInput("reply").restored).toBeUndefined()
  storeUnsavedFor(undefined)
  expect(unsavedInput("reply").write("Dear Eve")).toBe(false)
  storeUnsavedFor("ada")
  expect(unsavedInput("reply").restored).toBe("Dear Bob")
})

it("A person is asked before sign-out deletes input, and only if the account has any", () => {
  const confirm = vi.fn(() => false)
  vi.stubGlobal("confirm", confirm)
  storeUnsavedFor("bob")
  unsavedInput("reply").write("Dear Eve")
  storeUnsavedFor("ada")
  expect([maySignOut(), confirm.mock.calls.length]).toEqual([true, 0])
  unsavedInput("reply").write("Dear Bob")
  expect([maySignOut(), confirm.mock.calls.length]).toEqual([false, 1])
  confirm.mockReturnValue(true)
  expect(maySignOut()).toBe(true)
  deleteAllUnsaved()
  expect(Object.keys(localStorage)).toEqual([])
})

it("Input of two tabs under one name is stored side by side, and each tab renames and deletes its own", () => {
  storeUnsavedFor("ada")
  const all = (start = "") => unsavedWith(start).map(([name, value]: readonly [string, string]) => `${name}=${value}`)
  const [one, two] = [unsavedInput("new"), unsavedInput("new")]
  one.write("one")
  two.write("two")
  two.write("two, longer")
  expect(all()).toEqual(["new=one", "new=two, longer"])
  expect(all("ne")).toEqual(["w=one", "w=two, longer"])
  one.remove()
  expect(all()).toEqual(["new=two, longer"])
  // A reload restores it and goes on with it in place.
  const reloaded = unsavedInput("new")
  expect(reloaded.restored).toBe("two, longer")
  reloaded.adopt()
  reloaded.write("two, again")
  two.write("late")
  expect(all().toSorted()).toEqual(["new=late", "new=two, again"])
  reloaded.rename("draft")
  expect(all().toSorted()).toEqual(["draft=two, again", "new=late"])
  // A tab without input of its own renames nothing.
  unsavedInput("draft").rename("sent")
  expect(all().toSorted()).toEqual(["draft=two, again", "new=late"])
})

const form = async (file: string, name = "default") => (await source(file))[name]
const { client } = await source("client/Queries.ts")
const grant = (id: string) => ({ of: { id, client_name: id, handles: null, scopes: [], networks: null } })
const webhook = (id: string) => ({ id, url: "https://a.example/", event_types: ["*"], description: null })
const secret = (name: string) => ({ name, description: null, version: 1, created_at: "2026-11-20T08:00:00.000Z" })

it.each([
  ["a post", "connectors/ConnectorPage.tsx", undefined, [{ platform: "mastodon" }, { platform: "bluesky" }]],
  ["a connection", "connectors/ConnectPage.tsx", undefined, [{ platform: "mastodon" }, { platform: "bluesky" }]],
  ["a Tunnel", "tunnel/TunnelPage.tsx", undefined, [{}]],
  ["a profile", "card/ProfilePage.tsx", undefined, [{}]],
  ["permissions", "proof/Permissions.tsx", "Permissions", [{}]],
  ["a Webhook", "webhooks/WebhookForm.tsx", "WebhookForm", [{}, { from: webhook("wh_1") }, { from: webhook("wh_2") }]],
  ["a secret", "vault/SecretForm.tsx", "SecretForm", [{}, { present: secret("a") }, { present: secret("b") }]],
  ["an app", "keys/GrantForm.tsx", "GrantForm", [grant("one"), grant("two")]],
])("Input for %s is only shown again where it was entered", async (what, file, name, variants) => {
  vi.useRealTimers()
  heldCalls()
  vi.stubGlobal("requestIdleCallback", () => 0)
  vi.stubGlobal("cancelIdleCallback", () => {})
  await browserAt("/identities/ada")
  storeUnsavedFor("account")
  const Form = await form(file, name)
  const created_at = "2026-11-20T08:00:00.000Z"
  const state = { status: "connected", connected_via: "oauth", polled_at: null, last_error: null, created_at }
  const connector = { ...state, account: "a", capabilities: ["post"] }
  const connectors = ["mastodon", "bluesky"].map((platform) => ({ ...connector, platform }))
  const usage = { bytes_in: 0, bytes_out: 0, requests: 0, since: created_at }
  const settings = { host_header: "preserve", allowed_networks: [], callers: "anyone", basic_auth: null }
  const card = { name: "", description: "", version: "1", skills: [], card: {} }
  for (const handle of ["ada", "bob"]) {
    const known = {
      "": { handle, status: "ready", tunnel: { url: "https://ada.example" } },
      "/connectors": { paused: false, connectors },
      "/tunnel": { connected: false, port: null, links: [], usage, settings },
      "/card": card,
      "/proof": { sites: [], audiences: [] },
    }
    for (const [route, value] of Object.entries(known))
      client.setQueryData([`GET /api/identities/:handle${route}`, { params: { handle } }], value)
  }
  const places = variants.flatMap((more) =>
    (what === "an app" ? ["ada"] : ["ada", "bob"]).map((handle) => ({ handle, identity: handle, ...more })),
  )
  const opened = async (place: object) => {
    const { top, fire, leave } = await drawn(Form, { onClose: () => {}, onDone: () => {}, ...place })
    const texts = top.all("input").filter(({ attributes }) => attributes["type"] === "text")
    const control = what === "a secret" ? texts.at(-1) : (top.all("textarea")[0] ?? texts[0])
    const value = () => control!.attributes["value"]
    return { leave, value, type: (value: string) => fire(control, "input", { currentTarget: { value } }) }
  }
  for (const [at, place] of places.entries()) {
    const { type, value, leave } = await opened(place)
    expect(value() ?? "", JSON.stringify(place)).toBe("")
    await type(`typed ${at}`)
    await leave()
  }
  for (const [at, place] of places.entries()) {
    const { value, leave } = await opened(place)
    expect(value()).toBe(`typed ${at}`)
    await leave()
  }
})
