/** What the message editor shows and remembers before anything is sent, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, source } from "./Modules.ts"

const { Composer } = await source("compose/Composer.tsx")
const { client } = await source("client/Queries.ts")
const { storeUnsavedFor, unsavedInput } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  storeUnsavedFor("org")
  await browserAt("/identities/eve/mail/compose")
})
afterEach(async () => {
  await leavePage()
  storeUnsavedFor(undefined)
  vi.restoreAllMocks()
})

const opened = async (mail: object = {}, more: object = {}) => {
  const onReload = vi.fn()
  const page = await drawn(Composer, {
    handle: "eve",
    email: "eve@agents.example",
    beginning: { kind: "new", mail: { to: [], subject: "", text: "", ...mail }, leftOut: [], ...more },
    name: "compose:eve:",
    onMade: () => {},
    onReload,
  })
  const changes = () => calls.all.filter(({ method }) => method !== "GET")
  const people = () =>
    page.top
      .all({ class: "people" })
      .slice(1)
      .map((field) => field.all("label")[0]!.textContent)
  return { ...page, changes, people, onReload }
}

describe("The message editor", () => {
  it.each([
    ["new", "To"],
    ["forward", "To"],
    ["reply", "Text"],
    ["draft", undefined],
  ])("of the kind %s begins in the field %s", async (kind, label) => {
    const focused: Array<Drawn> = []
    vi.spyOn(Drawn.prototype, "focus").mockImplementation(function (this: Drawn) {
      focused.push(this)
    })
    const { draw, field } = await opened({}, { kind })
    await eventually(() => expect(focused).toEqual(label === undefined ? [] : [field(label)]))
    expect(draw).toBeDefined()
  })

  it("saves nothing of a message that was not changed, and says nothing about it", async () => {
    const { changes, leave, top } = await opened()
    expect(top.all({ class: "actions" })[0]!.all({ role: "status" })[0]!.textContent).toBe("")
    await leave()
    await new Promise(setImmediate)
    expect(changes()).toEqual([])
  })

  it("has fields for copies on request, or if there are some", async () => {
    const { people, press, button } = await opened()
    expect(people()).toEqual(["To"])
    await press("Cc, Bcc")
    expect([people(), button("Cc, Bcc")]).toEqual([["To", "Cc", "Bcc"], undefined])
    for (const one of ["cc", "bcc"])
      expect((await opened({ [one]: ["bob@example.org"] })).people()).toEqual(["To", "Cc", "Bcc"])
  })

  it("shows the sender, and what recipients see below the message", async () => {
    client.setQueryData(["GET /api/identities/:handle/ai-disclosure", { params: { handle: "eve" } }], {
      text: "By an AI",
    })
    const { top } = await opened()
    expect(top.all({ class: "people" })[0]!.textContent).toContain("Fromeve@agents.example")
    const [disclosure] = top.all({ class: "sheet-disclosure" })
    expect(disclosure!.all("p")[0]!.textContent).toBe("By an AI")
    expect(disclosure!.all("a")[0]!.attributes["href"]).toBe("/console/identities/eve/mail/settings")
  })

  it.each([
    ["Looking into it", "resumed. Looking into it"],
    [null, "resumed."],
  ])("says that mail is stopped, and the reason %j", async (reason, end) => {
    client.setQueryData(["GET /api/identities/:handle/mail", { params: { handle: "eve" } }], {
      outgoing: "stopped",
      reason,
    })
    const { top } = await opened()
    const [note] = top.all({ class: "note" })
    expect(note!.all({ class: "grow" })[0]!.textContent).toMatch(new RegExp(`^Outgoing mail is stopped.*${end}$`))
    expect(note!.all("a")[0]!.attributes["href"]).toBe("/console/identities/eve/mail/settings")
  })

  it("remembers in this browser whether messages have a formatting", async () => {
    const label = /^Send with formatting/
    const box = ({ top }: Awaited<ReturnType<typeof opened>>) =>
      top
        .all("label")
        .find(({ textContent }) => label.test(textContent))
        ?.all("input")[0]
    const isOn = (page: Awaited<ReturnType<typeof opened>>) => box(page)?.attributes["checked"] === "true"
    const first = await opened()
    expect(isOn(first)).toBe(false)
    await first.fire(box(first), "change", { currentTarget: { checked: true } })
    expect(isOn(first)).toBe(true)
    const second = await opened()
    expect(isOn(second)).toBe(true)
    await second.fire(box(second), "change", { currentTarget: { checked: false } })
    expect(isOn(await opened())).toBe(false)
    expect(box(await opened({ html: "<b>Dear</b>" }))).toBeUndefined()
    // Without storage, the choice is for this message.
    vi.stubGlobal("localStorage", undefined)
    const other = await opened()
    await other.fire(box(other), "change", { currentTarget: { checked: true } })
    expect(isOn(other)).toBe(true)
  })

  it("deletes restored input on request, and shows what the service has instead", async () => {
    const name = "compose:eve:"
    unsavedInput(name).write({ mail: { text: "typed" }, missing: [] })
    const { top, press, onReload } = await opened({ text: "typed" }, { missing: [] })
    expect(top.all({ class: "note" })[0]!.textContent).toMatch(/restored from this browser\.(?!.*Attach these)/)
    await press("Discard changes")
    expect([onReload.mock.calls.length, unsavedInput(name).restored]).toEqual([1, undefined])
  })
})
