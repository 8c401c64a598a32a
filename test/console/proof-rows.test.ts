/** The rows of the lists of proofs, without a browser: the state of each, and what an empty list says. */
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, source } from "./Modules.ts"

const { SignIns } = await source("proof/SignIns.tsx")
const { Tokens } = await source("proof/Tokens.tsx")
const { Toasts } = await source("ui/Toast.tsx")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/identities/nia/proof")
})
afterEach(leavePage)

const signIn = (status: string) => ({
  id: status,
  status,
  site: `${status}.example`,
  client_name: "Client",
  scopes: ["openid", "email"],
  signed_in_at: null,
  created_at: "2026-11-20T08:00:00Z",
})

it("Sign-ins that await approval are apart from the others, each of which has its state, scopes and time", async () => {
  const states = ["approved", "refused", "expired", "started", "signed_in", "ended"]
  const { top } = await drawn(SignIns, { handle: "nia" })
  const sign_ins = ["awaiting_approval", ...states].map(signIn)
  const { url } = await calls.answered(200, { sign_ins, next_cursor: null })
  expect(url).toBe("/api/identities/nia/sign-ins?limit=20")
  await eventually(() => expect(top.all("tr").length).toBe(states.length + 1))
  expect(top.all("h2").map(({ textContent }) => textContent)).toEqual(["Awaiting your approval", "Sign-ins"])
  const rows = top.all("tr").slice(1)
  expect(rows.map((row) => row.all({ class: "status" })[0]!.attributes["data-tone"])).toEqual([
    "busy",
    "bad",
    "off",
    "busy",
    "ok",
    "off",
  ])
  expect(rows.map((row) => row.all({ class: "mono small" })[0]!.textContent)).toEqual(Array(6).fill("openid email"))
  expect(top.all("time").map(({ attributes }) => attributes["dateTime"])).toEqual(Array(7).fill("2026-11-20T08:00:00Z"))
})

it("A list of sign-ins says that there are none, and has no approvals", async () => {
  const { top } = await drawn(SignIns, { handle: "nia" })
  await calls.answered(200, { sign_ins: [], next_cursor: null })
  await eventually(() => expect(top.textContent).toContain("No sign-ins yet"))
  expect([top.all("h2").length, top.all("table")]).toEqual([1, []])
})

it("A sign-in that was approved or ended is confirmed by a message", async () => {
  const toasts = await drawn(Toasts, {})
  const { button, press } = await drawn(SignIns, { handle: "nia" })
  const list = { sign_ins: ["awaiting_approval", "started"].map(signIn), next_cursor: null }
  await calls.answered(200, list)
  await eventually(() => expect(button("Approve awaiting_approval.example")).toBeDefined())
  await press("Approve awaiting_approval.example")
  await calls.answered(200, {})
  await calls.answered(200, list)
  await eventually(() => expect(toasts.top.textContent).toContain("awaiting_approval.example"))
})

it.each([
  ["session", "You"],
  ["admin_key", "Admin Key"],
  ["identity_key", "Agent"],
  ["imap_password", "Agent"],
  ["grant", "App"],
  ["nobody", "Unknown"],
])("A token that was requested by %s without a name says: %s", async (kind, text) => {
  const { top } = await drawn(Tokens, { handle: "nia" })
  const record = {
    id: kind,
    at: "2026-11-20T08:00:00Z",
    code: null,
    count: 1,
    outcome: "allowed",
    // The target of another operation is not the audience of a token.
    target: { type: "identity", name: "nia" },
    actor: { kind, client: null, name: null },
  }
  await calls.answered(200, { records: [record], next_cursor: null })
  await eventually(() => expect(top.all("tr").length).toBe(2))
  const cells = top.all("td").map(({ textContent }) => textContent)
  expect(cells.slice(0, 3)).toEqual(["–", "Issued", text])
  expect(top.all("time")[0]!.attributes["dateTime"]).toBe(record.at)
})

it("A list of tokens says that there are none", async () => {
  const { top } = await drawn(Tokens, { handle: "nia" })
  await calls.answered(200, { records: [], next_cursor: null })
  await eventually(() => expect(top.textContent).toContain("No tokens yet"))
  expect(top.all("table")).toEqual([])
})
