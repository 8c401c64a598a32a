/** The approval of a terminal, without a browser: what it may do, until when, and that each decision is about one code. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  browserAt,
  drawn,
  Entries,
  eventually,
  heldCalls,
  leaveAll,
  leavePage,
  problem,
  signedIn,
  source,
} from "./Modules.ts"

const { default: DevicesPage } = await source("keys/DevicesPage.tsx")
const { client } = await source("client/Queries.ts")
const { refine } = await source("router/Router.ts")

let calls: ReturnType<typeof heldCalls>
let signOut = () => {}
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
})
afterEach(async () => {
  await leaveAll()
  signOut()
  await leavePage()
})
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("A terminal", () => {
  const device = {
    user_code: "WDJB-MJHT",
    name: "desk",
    client: null,
    created_at: "2026-11-20T08:00:00Z",
    status: "pending",
    scopes: ["mail:read", "mail:send"],
    expires_in_days: 90,
  }
  const opened = async (more: object = {}) => {
    await browserAt("/keys/devices?user_code=WDJB-MJHT")
    signOut = await signedIn({ email: "ada@example.org" })
    client.setQueryData(["GET /api/auth/device/:userCode", { params: { userCode: "WDJB-MJHT" } }], {
      ...device,
      ...more,
    })
    return drawn(DevicesPage, {})
  }

  it("gets the scopes that remain chosen, and an earlier end than it requested", async () => {
    const { press, check, enter, button, facts, top } = await opened()
    expect(facts()["Account"]).toBe("ada@example.org")
    const days = top.all("option").map(({ attributes, textContent }) => [attributes["value"], textContent])
    expect(days).toEqual([
      ["7", "7 days"],
      ["30", "30 days"],
      ["", "90 days"],
    ])
    await check("mail:read", false)
    await check("mail:send", false)
    expect(button("Approve")!.attributes["disabled"]).toBe("true")
    await check("mail:read", true)
    await enter("Expiration", "30")
    await press("Approve")
    const request = await calls.next()
    expect([request.method, request.url, request.body]).toEqual([
      "POST",
      "/api/auth/device/WDJB-MJHT/approve",
      { scopes: ["mail:read"], expires_in_days: 30 },
    ])
  })

  it("gets full access only if it requested that, which the page says", async () => {
    const { press, facts } = await opened({ scopes: ["*"], expires_in_days: null })
    expect(facts()["Permissions"]).toBe("Full access")
    await press("Approve")
    expect((await calls.next()).body).toEqual({})
  })

  it("is denied without approval, and decided once", async () => {
    const { press, button, top } = await opened()
    await press("Deny")
    expect((await answered(200, {})).url).toBe("/api/auth/device/WDJB-MJHT/deny")
    await answered(200, { ...device, status: "denied" })
    await eventually(() => expect(button("Approve")).toBeUndefined())
    expect(top.all({ class: "note" })[0]!.attributes["data-tone"]).toBe("warn")
  })

  it.each([
    ["approved", "ok"],
    ["collected", "ok"],
    ["denied", "warn"],
    ["expired", "warn"],
  ])("that is %s cannot be decided again", async (status, tone) => {
    const { top, button } = await opened({ status })
    expect([button("Approve"), button("Deny")]).toEqual([undefined, undefined])
    expect(top.all({ class: "note" }).map(({ attributes }) => attributes["data-tone"])).toEqual([tone])
  })

  it("is only approved by a person who knows it, and shows why a decision failed", async () => {
    const { press, top, facts } = await opened({ client: "svc/1.0" })
    expect([facts()["Requested by"], top.all({ class: "note", "data-tone": "warn" }).length]).toEqual(["svc/1.0", 1])
    for (const name of ["Approve", "Deny"]) {
      await press(name)
      await answered(409, problem(409, { detail: `cannot ${name}` }))
      await eventually(() => expect(top.textContent).toContain(`cannot ${name}`))
    }
  })

  it("that was approved has a new key in the list", async () => {
    const { press, top } = await opened()
    const keys = ["GET /api/keys", { query: { limit: 100 } }]
    client.setQueryData(keys, [])
    await press("Approve")
    await answered(200, {})
    await answered(200, { ...device, status: "approved" })
    await eventually(() => expect(top.all({ class: "note", "data-tone": "ok" }).length).toBe(1))
    expect(client.getQueryState(keys)?.isInvalidated).toBe(true)
  })

  it("of another code begins with the scopes that it requested itself", async () => {
    const { check, button, top, press } = await opened()
    const other = { ...device, user_code: "OTHR-CODE", scopes: ["card:read"] }
    client.setQueryData(["GET /api/auth/device/:userCode", { params: { userCode: "OTHR-CODE" } }], other)
    await check("mail:read", false)
    await act(() => refine({ user_code: "OTHR-CODE" }))
    expect(top.all({ class: "device-code mono" })[0]!.textContent).toBe("OTHR-CODE")
    expect(button("Approve")!.attributes["disabled"]).toBeUndefined()
    await press("Approve")
    expect((await calls.next()).body).toEqual({ scopes: ["card:read"] })
  })

  it("is found by its code, and another code can be entered if there is none", async () => {
    await browserAt("/keys/devices?user_code=")
    const { enter, submit, press, top, field } = await drawn(DevicesPage, {})
    await enter("Code", " none ")
    await submit()
    expect((await answered(404, problem(404))).url).toBe("/api/auth/device/none")
    await eventually(() => expect(top.textContent).toContain("No request found for this code"))
    await press(top.all("button").at(-1)!.textContent)
    expect(field("Code")).toBeDefined()
  })
})
