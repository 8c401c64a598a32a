/** The vault, without a browser: which secret of which namespace is shown, changed, restored and deleted. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, problem, source } from "./Modules.ts"

const { default: VaultPage } = await source("vault/VaultPage.tsx")
const { SecretForm } = await source("vault/SecretForm.tsx")
const { Toasts } = await source("ui/Toast.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")
const { storeUnsavedFor } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
let storage: Entries
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", (storage = new Entries()))
  storeUnsavedFor("org")
})
afterEach(async () => {
  await leaveAll()
  storeUnsavedFor(undefined)
  client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
const answered = (status: number, body?: object) => calls.answered(status, body)

const secret = (name: string, version: number) => ({
  name,
  description: name === "two" ? "Reads orders" : null,
  size: 12,
  version,
  created_at: "2026-11-20T08:00:00Z",
  updated_at: "2026-11-20T08:00:00Z",
})
const list = { secrets: [secret("one", 1), secret("two", 7)], next_cursor: null }
const versions = {
  versions: [7, 6].map((version) => ({ version, created_at: "2026-11-20T08:00:00Z" })),
  next_cursor: null,
}

/** Opens the second secret in the namespace of an Identity. */
const opened = async () => {
  entries = await browserAt("/vault?identity=ada&secret=two")
  const identities = ["ada", "bob"].map((handle) => ({ handle, status: "ready" }))
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
  const shown = await drawn(VaultPage, {})
  expect((await answered(200, list)).url).toBe("/api/vault/secrets?limit=100&identity=ada")
  const read = await answered(200, versions)
  expect(read.url).toBe("/api/vault/secrets/two/versions?identity=ada&limit=50")
  await eventually(() => expect(shown.top.all("dialog")[0]!.all("ul")[0]!.all("li").length).toBe(2))
  const value = () => shown.top.all("dialog")[0]!.all("code")[0]!.textContent
  return { ...shown, value }
}
const hidden = "•".repeat(24)

it("A value is read only on request, for its own namespace, and hidden after 30 seconds or with the tab", async () => {
  const { press, value, facts } = await opened()
  expect([value(), facts()["Description"], facts()["Version"]]).toEqual([hidden, "Reads orders", "7"])
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  await press("Reveal")
  expect((await answered(200, { value: "seven" })).url).toBe("/api/vault/secrets/two/value?identity=ada")
  await vi.waitFor(() => expect(value()).toBe("seven"))
  await act(async () => void vi.advanceTimersByTime(29_000))
  expect(value()).toBe("seven")
  await act(async () => void vi.advanceTimersByTime(1_000))
  expect(value()).toBe(hidden)
  vi.useRealTimers()
  const listening = vi.spyOn(document, "addEventListener")
  await press("Reveal")
  await answered(200, { value: "seven" })
  await eventually(() => expect(value()).toBe("seven"))
  const [, hide] = listening.mock.calls.find(([type]) => type === "visibilitychange")!
  await act(() => (hide as () => void)())
  expect(value()).toBe(hidden)
})

it("A value that cannot be read says why, and one that is copied is not shown", async () => {
  const { press, value, top } = await opened()
  await press("Reveal")
  await answered(403, problem(403, { detail: "not yours" }))
  await eventually(() => expect(top.textContent).toContain("not yours"))
  const toasts = await drawn(Toasts, {})
  const written = vi.fn(() => Promise.resolve())
  vi.stubGlobal("navigator", { clipboard: { writeText: written } })
  await press("Copy two")
  await answered(200, { value: "seven" })
  await eventually(() => expect(written.mock.calls).toEqual([["seven"]]))
  expect(value()).toBe(hidden)
  await press("Copy two")
  await answered(403, problem(403, { detail: "not any more" }))
  await eventually(() => expect(toasts.top.textContent).toContain("not any more"))
  await press("Copy two")
  await act(async () => (await calls.next()).lose())
  await eventually(() => expect(toasts.top.textContent).toContain("Can’t reach the service"))
  await press("Restore: Version 6")
  await answered(409, problem(409, { detail: "not now" }))
  await eventually(() => expect(top.textContent).toContain("not now"))
})

it("Only earlier versions can be restored, and a value that was shown before is not shown for the restored one", async () => {
  const { press, value, button, top } = await opened()
  await press("Reveal")
  await answered(200, { value: "seven" })
  await eventually(() => expect(value()).toBe("seven"))
  expect(button("Restore: Version 7")).toBeUndefined()
  await press("Restore: Version 6")
  const request = await answered(200, {})
  expect([request.method, request.url, request.body]).toEqual([
    "POST",
    "/api/vault/secrets/two/restore?identity=ada",
    { version: 6 },
  ])
  for (const _ of [1, 2]) {
    const { url, answer } = await calls.next()
    const changed = { ...list, secrets: [secret("one", 1), secret("two", 8)] }
    await act(async () => answer(200, url.includes("versions") ? versions : changed))
  }
  await eventually(() => expect(top.textContent).toContain("Version8"))
  expect(value()).toBe(hidden)
})

it("A secret is deleted after its name was typed, in its own namespace, and its dialog closes", async () => {
  const { press, enter, button, top } = await opened()
  await press("Delete")
  expect([calls.waiting(), button("Delete")!.attributes["disabled"]]).toEqual([0, "true"])
  expect(top.all("h2").at(-1)!.textContent).toBe("Delete two?")
  await enter(top.all("dialog")[0]!.all("label")[0]!.textContent, "two")
  await press("Delete")
  const request = await answered(204)
  expect([request.method, request.url]).toEqual(["DELETE", "/api/vault/secrets/two?identity=ada"])
  await answered(200, { secrets: [secret("one", 1)], next_cursor: null })
  await eventually(() => expect(entries).toEqual(["replace /vault?identity=ada"]))
  expect((await drawn(Toasts, {})).top.textContent).toContain("two deleted")
})

it("A change replaces only the version that a person saw, keeps the description, and says if there is a newer one", async () => {
  const { press, enter, submit, top } = await opened()
  await press("Change value")
  await enter("Value", "eight")
  await submit()
  const first = await answered(412, problem(412, { code: "precondition_failed" }))
  expect([first.method, first.url, first.headers["if-match"], first.body]).toEqual([
    "PUT",
    "/api/vault/secrets/two?identity=ada",
    `"v7.${Date.parse("2026-11-20T08:00:00Z")}"`,
    { value: "eight", description: "Reads orders" },
  ])
  await eventually(() => expect(top.all({ "data-tone": "bad" }).length).toBe(1))
  const stale = top.all({ "data-tone": "bad" })[0]!.textContent
  // The value is not stored in the browser.
  expect(JSON.stringify(storage)).not.toContain("eight")
  await enter("Description", " ")
  await submit()
  expect((await calls.next()).body).toEqual({ value: "eight", description: null })
  await leaveAll()
  const onDone = vi.fn()
  const other = await drawn(SecretForm, { identity: undefined, onClose: () => {}, onDone })
  await other.enter("Name", "erp.token")
  // The line break at the end of a PEM file belongs to its value.
  await other.enter("Value", "one\n")
  await other.submit()
  const made = await answered(412, problem(412, { code: "precondition_failed" }))
  expect([made.url, made.headers["if-none-match"], made.body.value]).toEqual([
    "/api/vault/secrets/erp.token",
    "*",
    "one\n",
  ])
  expect(made.headers["if-match"]).toBeUndefined()
  await eventually(() => expect(other.top.all({ "data-tone": "bad" }).length).toBe(1))
  expect(other.top.all({ "data-tone": "bad" })[0]!.textContent).not.toBe(stale)
  expect([JSON.stringify(storage).includes('\\"one'), onDone.mock.calls.length]).toEqual([false, 0])
  await other.submit()
  await answered(201, {})
  await eventually(() => expect(onDone).toHaveBeenCalledTimes(1))
  expect((await drawn(Toasts, {})).top.textContent).toContain("erp.token saved")
})

it("Secrets open in their own namespace, and another one is shown without the secret that was open", async () => {
  const { enter, top } = await opened()
  expect(top.all("tr")[1]!.all("a")[0]!.attributes["href"]).toBe("/console/vault?identity=ada&secret=one")
  await enter("Namespace", "bob")
  expect(entries).toEqual(["replace /vault?identity=bob"])
  await enter("Namespace", "")
  expect(entries.at(-1)).toBe("replace /vault")
})

it("The secrets of all loaded pages are listed, and open from the list", async () => {
  await browserAt("/vault?secret=three")
  client.setQueryData(["GET /api/identities", identitiesInput], { identities: [], next_cursor: null })
  const { top, press } = await drawn(VaultPage, {})
  await answered(200, { ...list, next_cursor: "more" })
  await eventually(() => expect(top.all("tr").length).toBe(3))
  expect(
    top.all("tr").map((row) =>
      row
        .all("td")
        .map(({ textContent }) => textContent)
        .slice(0, 4),
    ),
  ).toEqual([[], ["one", "", "12 bytes", "1"], ["two", "Reads orders", "12 bytes", "7"]])
  expect(top.all("time").map(({ attributes }) => attributes["dateTime"])).toEqual(Array(2).fill("2026-11-20T08:00:00Z"))
  await press("Show more")
  expect((await answered(200, { secrets: [secret("three", 1)], next_cursor: null })).url).toContain("cursor=more")
  await eventually(() => expect(top.all("tr").length).toBe(4))
  expect(top.all("dialog")[0]!.all("h2")[0]!.textContent).toBe("three")
})

it("An account without secrets is told what they are for, and which namespaces there are", async () => {
  await browserAt("/vault")
  const identities = ["ada", "bob"].map((handle) => ({ handle, status: "ready" }))
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
  const { top, press, field } = await drawn(VaultPage, {})
  expect((await answered(200, { secrets: [], next_cursor: null })).url).toBe("/api/vault/secrets?limit=100")
  await eventually(() => expect(top.all({ class: "empty" })[0]?.textContent).toContain("No secrets yet"))
  const options = top.all("option").map(({ attributes, textContent }) => [attributes["value"], textContent])
  expect(options).toEqual([
    ["", "Account"],
    ["ada", "@ada"],
    ["bob", "@bob"],
  ])
  await press("Add secret")
  expect([field("Name")!.attributes["required"], field("Value")!.attributes["required"]]).toEqual(["true", "true"])
  await press("Cancel")
  expect(top.all("dialog")).toEqual([])
})
