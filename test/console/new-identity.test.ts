/** The form that creates an Identity, without a browser: what it says about a name, and what it creates. */
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, problem, signedIn, source } from "./Modules.ts"

const { NewIdentity } = await source("identity/NewIdentity.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")

let calls: ReturnType<typeof heldCalls>
let signOut = () => {}
let entries: ReadonlyArray<string>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  entries = await browserAt("/identities/new")
  signOut = await signedIn({ email: "Ada.L@example.org" })
  const identities = [{ handle: "bob", email: "bob@agents.example", status: "ready" }]
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
})
afterEach(async () => {
  await leaveAll()
  signOut()
  client.clear()
  vi.unstubAllGlobals()
})
const answered = (status: number, body?: object) => calls.answered(status, body)
const opened = async () => {
  const shown = await drawn(NewIdentity, {})
  const isOff = () => shown.button("Create Identity")!.attributes["disabled"] === "true"
  const wrong = () => shown.top.all({ class: "wrong" })[0]?.textContent
  const free = () => shown.top.all({ role: "status" })[0]!.textContent
  return { ...shown, isOff, wrong, free }
}

it("A name is checked once a person stops typing, and a taken name cannot be created", async () => {
  const { enter, isOff, wrong, free, field, top } = await opened()
  expect([isOff(), field("Name")!.attributes["placeholder"]]).toEqual([true, "Ada-L"])
  expect(top.all({ class: "affix mono" })[0]!.textContent).toBe("@agents.example")
  await enter("Name", "ad")
  expect(isOff()).toBe(false)
  await enter("Name", "adax")
  await enter("Name", " Ada ")
  const taken = await answered(200, { available: false, code: "handle_taken" })
  expect(taken.url).toBe("/api/handles/ada")
  await eventually(() => expect([wrong(), isOff(), free()]).toEqual(["This name is already taken", true, ""]))
  // The outcome is that of the former name.
  await enter("Name", "adam")
  expect([wrong(), isOff(), free()]).toEqual([undefined, false, ""])
  await answered(200, { available: true })
  await eventually(() => expect(free()).toBe("adam is available"))
  expect(calls.all.map(({ url }) => url)).toEqual(["/api/handles/ada", "/api/handles/adam"])
})

it("An Identity is created with the name in small letters, and its page is opened", async () => {
  const { enter, submit } = await opened()
  await enter("Name", " AD ")
  await submit()
  const request = await answered(202, { handle: "ad" })
  expect([request.method, request.url, request.body]).toEqual(["POST", "/api/identities", { handle: "ad" }])
  await answered(200, { identities: [], next_cursor: null })
  await eventually(() => expect(entries).toEqual(["push /identities/ad"]))
})

it.each([
  ["handle_taken", {}, "no", 0],
  ["handle_reserved", {}, "no", 0],
  ["handle_invalid", {}, "no", 0],
  ["invalid_request", { errors: [{ path: "/handle", message: "too short" }] }, "too short", 0],
  ["identity_quota_exhausted", {}, undefined, 1],
])("A rejection (%s) is shown once, until the name changes", async (code, more, text, notes) => {
  const { enter, submit, wrong, top } = await opened()
  await enter("Name", "ad")
  await submit()
  await answered(409, problem(409, { code, ...more }))
  await eventually(() => expect([wrong(), top.all({ class: "note" }).length]).toEqual([text, notes]))
  await enter("Name", "ae")
  expect([wrong(), top.all({ class: "note" }).length]).toEqual([undefined, 0])
  expect(entries).toEqual([])
})
