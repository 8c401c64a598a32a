/** Keys and connected apps, without a browser: what is requested, and which one is changed or revoked. */
import { capabilities } from "@svc/domain/account/Scope"
import { scopeNames } from "@svc/domain/ScopeTable"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, listedKey, problem, source } from "./Modules.ts"

const { NewKey, Replacing } = await source("keys/NewKey.tsx")
const { ConnectedApps } = await source("keys/ConnectedApps.tsx")
const { default: KeysPage } = await source("keys/KeysPage.tsx")
const { Toasts } = await source("ui/Toast.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/keys")
  const identities = ["ada", "bob"].map((handle) => ({ id: `id_${handle}`, handle, status: "ready" }))
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
  client.setQueryData(listed, [])
})
afterEach(async () => {
  await leaveAll()
  client.clear()
  vi.unstubAllGlobals()
})
const answered = (status: number, body?: object) => calls.answered(status, body)
const listed = ["GET /api/keys", { query: { limit: 100 } }]
const isListStale = () => client.getQueryState(listed)?.isInvalidated

describe("A new key", () => {
  const opened = async () => {
    const onClose = vi.fn()
    return { onClose, ...(await drawn(NewKey, { handles: ["ada", "bob"], onClose })) }
  }

  it("has every right, for 90 days and from everywhere, unless a person limits it", async () => {
    const { enter, submit } = await opened()
    await enter("Name", "laptop")
    await submit()
    const { method, url, body } = await calls.next()
    expect([method, url, body]).toEqual(["POST", "/api/keys", { name: "laptop", expires_in_days: 90 }])
  })

  it("is created for the chosen Identity with the chosen scopes, networks and expiration", async () => {
    const { enter, check, submit, button, top } = await opened()
    await enter("Name", "agent")
    await enter("Access to", "bob")
    await enter("Permissions", "choose")
    const offered = top.all({ class: "mono" }).map(({ textContent }) => textContent)
    expect(offered.toSorted()).toEqual([...scopeNames].toSorted())
    for (const name of offered) await check(name, false)
    expect(top.all({ class: "wrong" }).length).toBe(1)
    await submit()
    expect(calls.waiting()).toBe(0)
    await check("mail:send", true)
    await check("mail:read", true)
    await check("mail:send", false)
    await check("card:read", true)
    expect(top.all({ class: "wrong" }).length).toBe(0)
    await enter("Expiration", "7")
    await enter("Allowed IP addresses", " 192.0.2.0/24,\n2001:db8::/32 ")
    await submit()
    const request = await answered(201, { key: "svc_agent_secret" })
    expect([request.url, request.body]).toEqual([
      "/api/identities/bob/keys",
      {
        name: "agent",
        scopes: ["mail:read", "card:read"],
        expires_in_days: 7,
        networks: ["192.0.2.0/24", "2001:db8::/32"],
      },
    ])
    await eventually(() => expect(button("I have stored it")).toBeDefined())
    expect(top.textContent).not.toContain("svc_agent_secret")
    expect(top.textContent).toContain("only shown once")
    expect(isListStale()).toBe(true)
  })

  it("that may only read has every scope that reads, and no end if a person chooses that", async () => {
    const { enter, submit } = await opened()
    await enter("Name", "reader")
    await enter("Permissions", "read")
    await enter("Expiration", "")
    await submit()
    const { body } = await calls.next()
    expect(body.scopes.toSorted()).toEqual(capabilities.map((name) => `${name}:read`).toSorted())
    expect(Object.keys(body)).toEqual(["name", "scopes"])
  })

  it("shows each error of the service at its field", async () => {
    const { top, submit } = await opened()
    await submit()
    const pointers = ["/name", "/scopes/0", "/expires_in_days", "/networks/1"]
    await answered(422, problem(422, { errors: pointers.map((path) => ({ path, message: path })) }))
    await eventually(() => expect(top.all({ class: "wrong" }).length).toBe(4))
    const wrong = top
      .all({ class: "wrong" })
      .map(({ parentNode, textContent }) => [parentNode!.all("label")[0]!.textContent, textContent])
    expect(wrong).toEqual([
      ["Name", "/name"],
      ["Permissions", "/scopes/0"],
      ["Expiration", "/expires_in_days"],
      ["Allowed IP addresses (optional)", "/networks/1"],
    ])
  })
})

it("A rotated key stays valid for a day, or for as long as a person chooses, and is then shown once", async () => {
  const onClose = vi.fn()
  const { top, enter, submit, press, fire } = await drawn(Replacing, { of: { id: "key_2", name: "laptop" }, onClose })
  await submit()
  const first = await answered(422, problem(422))
  expect([first.url, first.body]).toEqual(["/api/keys/key_2/rotate", { overlap_seconds: 86_400 }])
  await eventually(() => expect(top.all({ role: "alert" }).length).toBe(1))
  const choices = top.all("option").map(({ attributes, textContent }) => [attributes["value"], textContent])
  expect(choices.slice(1)).toEqual([
    ["3600", "1 hour"],
    ["86400", "24 hours"],
    ["604800", "7 days"],
  ])
  await enter("Old key expires after", "0")
  await submit()
  expect((await answered(200, { key: "svc_admin_secret" })).body).toEqual({ overlap_seconds: 0 })
  await eventually(() => expect(top.textContent).toContain("svc_admin_•"))
  expect(isListStale()).toBe(true)
  // Only its button closes the dialog with the new key.
  await fire(top.all("dialog")[0], "cancel")
  await fire(top.all("dialog")[0], "click")
  expect([onClose.mock.calls.length, top.all({ "aria-label": "Close" }).length]).toEqual([0, 0])
  await press("I have stored it")
  expect(onClose).toHaveBeenCalledTimes(1)
})

const keysPage = async (page: object) => {
  client.removeQueries({ queryKey: listed })
  const shown = await drawn(KeysPage, {})
  for (const _ of [1, 2]) {
    const { url, answer } = await calls.next()
    await act(async () => answer(200, url.startsWith("/api/keys") ? page : { grants: [], next_cursor: "more apps" }))
  }
  await eventually(() => expect(shown.top.all({ class: "skeleton" }).length).toBe(0))
  return shown
}

it("Further keys and apps are shown on request, and a key is offered for the Identities that are ready", async () => {
  const identities = ["ready", "deleting"].map((status) => ({ id: status, handle: status, status }))
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
  const { top, fire, press } = await keysPage({ api_keys: [], next_cursor: "more keys" })
  const further = top.all("button").filter(({ textContent }) => textContent === "Show more")
  for (const button of further) await fire(button, "click")
  const asked = [await calls.next(), await calls.next()].map(({ url }) => url)
  expect(asked).toEqual(["/api/keys?limit=100&cursor=more+keys", "/api/grants?limit=100&cursor=more+apps"])
  await press("Create key")
  expect(
    top
      .all("dialog")[0]!
      .all("select")[0]!
      .all("option")
      .map(({ textContent }) => textContent),
  ).toEqual(["Whole account (Admin Key)", "@ready"])
})

it("A key that expired or was rotated says so and cannot be rotated, and each shows its own use", async () => {
  const past = "2020-01-01T00:00:00Z"
  const use = { scopes: ["mail:read"], last_used_at: past, last_used_address: "192.0.2.9" }
  const states = { used: { ...use, expires_at: "2999-01-01T00:00:00Z" }, ended: { expires_at: past } }
  const all = Object.entries({ ...states, replaced: { replaced_by: "used" } })
  const api_keys = all.map(([id, more]) => listedKey(id, more))
  const { top, button } = await keysPage({ api_keys, next_cursor: null })
  await eventually(() => expect(top.all("table").length).toBe(1))
  const rows = top.all("tr").slice(1)
  expect(rows.map((row) => row.all({ class: "status" }).map(({ textContent }) => textContent))).toEqual([
    [],
    ["Expired"],
    ["Rotated"],
  ])
  expect(all.map(([id]) => button(`Rotate ${id}`) !== undefined)).toEqual([true, false, false])
  expect(rows.map(({ textContent }) => textContent.includes("192.0.2.9"))).toEqual([true, false, false])
  expect(rows.map(({ textContent }) => textContent.includes("mail:read"))).toEqual([true, false, false])
})

it("Revoking a key of several asks for this one by its name, revokes it, and reads the list again", async () => {
  const ofBob = { scope: "identity", identity_id: "id_bob" }
  const keys = [listedKey("one"), listedKey("two"), listedKey("bob", ofBob), listedKey("own", ofBob)]
  const { top, press, button } = await keysPage({ api_keys: keys, next_cursor: null })
  await eventually(() => expect(top.all("table").length).toBe(2))
  const rows = top.all("table").map((table) => table.all("tr").map((row) => row.all("td")[0]?.textContent))
  expect(rows).toEqual([
    [undefined, "one", "two"],
    [undefined, "@bob", "@bobown"],
  ])
  await press("Revoke two")
  expect(top.all("dialog")[0]!.all("h2")[0]!.textContent).toContain("two")
  expect(calls.waiting()).toBe(0)
  await press("Revoke")
  const request = await answered(204)
  expect([request.method, request.url]).toEqual(["DELETE", "/api/keys/two"])
  expect((await calls.next()).url).toMatch(/^\/api\/keys\?/)
  await eventually(() => expect(top.all("dialog").length).toBe(0))
  expect((await drawn(Toasts, {})).top.textContent).toContain("two")
  expect(button("Rotate two")).toBeDefined()
  await press("Rotate bob")
  expect(top.all("dialog")[0]!.all("h2")[0]!.textContent).toContain("bob")
})

describe("A connected app", () => {
  const grant = (id: string, more: object = {}) => ({
    id,
    client_name: id,
    redirect_host: `${id}.example`,
    handles: ["ada"],
    scopes: ["mail:read", "mail:send"],
    networks: null,
    last_used_at: null,
    last_used_address: null,
    expires_at: "2027-01-01T00:00:00Z",
    ...more,
  })
  const opened = async () => {
    const shown = await drawn(ConnectedApps, {})
    const use = { last_used_at: "2026-11-20T08:00:00Z", last_used_address: "192.0.2.9" }
    const grants = [grant("one"), grant("two", { handles: null, networks: ["192.0.2.0/24"], ...use })]
    await answered(200, { grants, next_cursor: null })
    await eventually(() => expect(shown.top.all("tr").length).toBe(3))
    return shown
  }

  it("shows its agents, permissions and networks", async () => {
    const { top } = await opened()
    const cells = top.all("tr").map((row) => row.all("td").map(({ textContent }) => textContent))
    expect(cells.slice(1).map((row) => row.slice(0, 3))).toEqual([
      ["oneone.example", "@ada", "mail:read mail:send"],
      ["twotwo.example", "Whole account", "mail:read mail:send192.0.2.0/24"],
    ])
    expect([cells[1]![3], cells[2]![3]]).toEqual(["Never", expect.stringContaining("192.0.2.9")])
    const times = top.all("tr").map((row) => row.all("time").map(({ attributes }) => attributes["dateTime"]))
    expect(times.slice(1)).toEqual([["2027-01-01T00:00:00Z"], ["2026-11-20T08:00:00Z", "2027-01-01T00:00:00Z"]])
  })

  it("gets exactly the agents, scopes and networks that are chosen", async () => {
    const { press, check, enter, submit, button, top } = await opened()
    await press("Edit one")
    const isOff = () => button("Save")!.attributes["disabled"]
    await check("@ada", false)
    expect(isOff()).toBe("true")
    await check("@bob", true)
    await check("mail:send", false)
    await check("mail:read", false)
    expect(isOff()).toBe("true")
    await check("card:read", true)
    expect(isOff()).toBeUndefined()
    await enter("Allowed IP addresses", "198.51.100.0/24 203.0.113.7")
    await submit()
    const request = await answered(200, grant("one"))
    expect([request.method, request.url, request.body]).toEqual([
      "PATCH",
      "/api/grants/one",
      { scopes: ["card:read"], handles: ["bob"], networks: ["198.51.100.0/24", "203.0.113.7"] },
    ])
    await answered(200, { grants: [grant("one"), grant("two")], next_cursor: null })
    await eventually(() => expect(top.all("dialog").length).toBe(0))
  })

  it("of the whole account stays that, and has no networks if its networks are removed", async () => {
    const { press, enter, submit, button, top } = await opened()
    await press("Edit two")
    expect(button("Save")!.attributes["disabled"]).toBeUndefined()
    const offered = top.all("code").map(({ textContent }) => textContent)
    expect(offered.filter((name) => name.endsWith(":secret"))).toEqual(["vault:secret"])
    await enter("Allowed IP addresses", "  ")
    await submit()
    expect((await calls.next()).body).toEqual({ scopes: ["mail:read", "mail:send"], handles: null, networks: null })
  })

  it("is opened by the link of a problem", async () => {
    const id = "0190a1b2-0000-7000-8000-000000000001"
    await browserAt(`/keys/${id}`)
    const { top } = await drawn(ConnectedApps, {})
    await answered(200, { grants: [grant("one"), grant(id)], next_cursor: null })
    await eventually(() => expect(top.all("dialog")[0]?.all("h2")[0]!.textContent).toContain(id))
  })

  it("loses its access after a question that names it", async () => {
    const { press, top } = await opened()
    await press("Revoke one")
    expect(calls.waiting()).toBe(0)
    expect(top.all("dialog")[0]!.all("h2")[0]!.textContent).toContain("one")
    await press("Revoke")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", "/api/grants/one"])
    expect((await calls.next()).url).toMatch(/^\/api\/grants\?/)
    await eventually(() => expect(top.all("dialog").length).toBe(0))
  })
})
