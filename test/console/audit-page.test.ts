/** The audit log, without a browser. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, source } from "./Modules.ts"

const { default: AuditPage } = await source("audit/AuditPage.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  const identities = ["ada", "bob"].map((handle) => ({ id: `id_${handle}`, handle, status: "ready" }))
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
})
afterEach(leavePage)
const record = (id: string, more: object = {}, source: object = {}) => ({
  id,
  at: "2026-11-25T12:00:00.000Z",
  class: "change",
  action: "identities.create",
  actor: { kind: "session", id: "s", name: null, client: null },
  identity: "ada",
  target: { type: "identity", id: "i", name: "ada" },
  outcome: "allowed",
  code: null,
  count: 1,
  source: { via: "rest", tool: null, address: "192.0.2.1", ...source },
  ...more,
})
const opened = async (search: string, records: ReadonlyArray<object>, next_cursor: string | null = null) => {
  await browserAt(`/audit${search}`)
  const page = await drawn(AuditPage, {})
  const request = await calls.next()
  await act(async () => request.answer(200, { records, next_cursor }))
  return { ...page, url: new URL(request.url, "http://localhost") }
}

describe("The audit log", () => {
  it.each([
    ["", {}],
    ["?class=secret&outcome=refused&identity=bob", { class: "secret", outcome: "refused", identity: "bob" }],
    ["?class=other&outcome=x", {}],
  ])("is filtered by what the address names: %s", async (search, wanted) => {
    const { url, top } = await opened(search, [])
    expect(url.pathname).toBe("/api/audit")
    const { limit: _, ...query } = Object.fromEntries(url.searchParams)
    expect(query).toEqual(wanted)
    await eventually(() => expect(top.textContent).toContain("No records"))
    expect(top.all("option").map(({ attributes, textContent }) => attributes["value"] ?? textContent)).toEqual(
      expect.arrayContaining(["secret", "change", "auth", "allowed", "refused", "failed", "repeated", "ada", "bob"]),
    )
  })

  it("is filtered by what is chosen, and keeps that in its address", async () => {
    const { enter } = await opened("", [])
    for (const [label, value] of [
      ["Category", "secret"],
      ["Outcome", "refused"],
      ["Identity", "bob"],
    ])
      await enter(label!, value!)
    expect(location.search).toBe("?class=secret&outcome=refused&identity=bob")
  })

  it("says who did what and where, with its outcome", async () => {
    const { top } = await opened("", [
      record("1"),
      record("2", { outcome: "refused", code: "rate_limited" }, { via: "mcp", tool: "svc_email_send" }),
      record("3", { outcome: "failed", class: "secret" }, { via: "console", address: null }),
      record("4", { outcome: "repeated", class: "auth" }),
    ])
    await eventually(() => expect(top.all({ class: "record" })).toHaveLength(4))
    const rows = top.all({ class: "record" })
    expect(rows.map((row) => row.all({ class: "status" })[0]!.attributes["data-tone"])).toEqual([
      "ok",
      "warn",
      "bad",
      "off",
    ])
    expect(rows.map((row) => row.all({ class: "about one-line" })[0]!.textContent)).toEqual([
      "API · 192.0.2.1",
      "svc_email_send · 192.0.2.1",
      "Console",
      "API · 192.0.2.1",
    ])
    expect(rows.map((row) => row.all({ class: "type" })[0]!.textContent)).toEqual([
      "Changes",
      "Changes",
      "Secrets",
      "Access",
    ])
    const sentences = rows.map((row) => row.all("summary")[0]!.textContent)
    expect(sentences.map((text) => text.includes("(rate_limited)"))).toEqual([false, true, false, false])
    expect(sentences[0]).toContain("ada")
    expect(rows[1]!.all("pre")[0]!.textContent).toContain('"code": "rate_limited"')
  })

  it("has further records on request", async () => {
    const { top, press } = await opened("?class=auth", [record("1")], "next")
    await eventually(() => expect(top.textContent).toContain("Show more"))
    await press("Show more")
    const request = await calls.next()
    const { searchParams } = new URL(request.url, "http://localhost")
    expect([searchParams.get("cursor"), searchParams.get("class")]).toEqual(["next", "auth"])
    await act(async () => request.answer(200, { records: [record("2")], next_cursor: null }))
    await eventually(() => expect(top.all({ class: "record" })).toHaveLength(2))
  })
})
