/** Sign-ins and signing keys of an Identity, without a browser: which one is approved, ended or removed. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { SignIns } = await source("proof/SignIns.tsx")
const { Keys } = await source("proof/Keys.tsx")
const { client } = await source("client/Queries.ts")

const at = "/api/identities/ada"
let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/identities/ada/proof")
})
afterEach(leavePage)
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("A sign-in", () => {
  const one = (id: string, status: string) => ({
    id,
    status,
    site: `${id}.example`,
    client_name: `Client ${id}`,
    scopes: ["openid", "email"],
    signed_in_at: null,
    created_at: "2026-11-20T08:00:00Z",
  })
  const states = ["approved", "refused", "expired", "started", "signed_in", "ended"]
  const list = {
    sign_ins: [
      one("first", "awaiting_approval"),
      one("second", "awaiting_approval"),
      ...states.map((state) => one(state, state)),
    ],
    next_cursor: null,
  }
  const opened = async () => {
    const shown = await drawn(SignIns, { handle: "ada" })
    await answered(200, list)
    await eventually(() => expect(shown.top.all("tr").length).toBe(states.length + 1))
    return shown
  }

  it("that waits shows its site, what the site calls itself and what it gets", async () => {
    const { top } = await opened()
    const waiting = top
      .all("ul")[0]!
      .all("li")
      .map(({ textContent }) => textContent)
    expect(waiting.length).toBe(2)
    expect(waiting[1]).toMatch(/second\.example.*Client second.*openid email/)
  })

  it.each([
    [0, "approve"],
    [1, "refuse"],
  ])("that waits is decided for its own site (%d: %s)", async (index, action) => {
    const { top, fire } = await opened()
    const [, second] = top.all("ul")[0]!.all("li")
    await fire(second!.all("button")[index], "click")
    const request = await answered(409, problem(409, { detail: "too late" }))
    expect([request.method, request.url]).toEqual(["POST", `${at}/sign-ins/second/${action}`])
    await eventually(() => expect(second!.textContent).toContain("too late"))
    expect(top.all("ul")[0]!.all("li")[0]!.textContent).not.toContain("too late")
  })

  it("can be ended while the site may use it, after a confirmation that names the site", async () => {
    const { top, fire } = await opened()
    const rows = top.all("tr").slice(1)
    expect(states.filter((_, index) => rows[index]!.all("button").length > 0)).toEqual([
      "approved",
      "started",
      "signed_in",
    ])
    const row = rows[states.indexOf("signed_in")]!
    await fire(row.all("button")[0], "click")
    expect([calls.waiting(), top.all("dialog")[0]!.all("h2")[0]!.textContent]).toEqual([
      0,
      expect.stringContaining("signed_in.example"),
    ])
    await fire(top.all("dialog")[0]!.all("button").at(-1), "click")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `${at}/sign-ins/signed_in`])
    expect((await calls.next()).url).toMatch(/sign-ins\?/)
  })
})

describe("A signing key", () => {
  const one = (kid: string, more: object = {}) => ({
    kid,
    origin: "service",
    name: null,
    jwk: { crv: "Ed25519" },
    retired_at: null,
    published_until: null,
    created_at: "2026-11-20T08:00:00Z",
    ...more,
  })
  const retired = { retired_at: "2026-11-21T08:00:00Z", published_until: "2026-12-21T08:00:00Z" }
  const keys = [
    one("signing-key-1"),
    one("retired-key-2", retired),
    one("agents-key-03", { origin: "agent", name: "HSM" }),
  ]
  const opened = async () => {
    client.setQueryData(["GET /api/identities/:handle/signing-keys", { params: { handle: "ada" } }], { keys })
    return drawn(Keys, { handle: "ada" })
  }

  it("of the service can be removed only after it was replaced, one of the agent always", async () => {
    const { top, fire } = await opened()
    const rows = top.all("tr").slice(1)
    expect(rows.map((row) => row.all("button").length)).toEqual([0, 1, 1])
    expect(rows[2]!.textContent).toContain("HSM")
    await fire(rows[1]!.all("button")[0], "click")
    expect([calls.waiting(), top.all("dialog")[0]!.all("h2")[0]!.textContent]).toEqual([
      0,
      expect.stringContaining("retired-key-"),
    ])
    await fire(top.all("dialog")[0]!.all("button").at(-1), "click")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `${at}/signing-keys/retired-key-2`])
  })

  it("of the service is rotated after a confirmation", async () => {
    const { top, fire } = await opened()
    await fire(top.all("button")[0], "click")
    expect(calls.waiting()).toBe(0)
    await fire(top.all("dialog")[0]!.all("button").at(-1), "click")
    const request = await answered(200, {})
    expect([request.method, request.url]).toEqual(["POST", `${at}/signing-key/rotate`])
    expect((await calls.next()).url).toBe(`${at}/signing-keys`)
  })
})
