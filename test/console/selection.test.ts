/** The selected entries of the mail list, without a browser: which of them an action is for. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, heldCalls, leaveAll, source } from "./Modules.ts"

const { isSelecting, Pick, searchOf, Selection, staying } = await source("mail/selection/Selection.tsx")
const { leaving } = await source("mail/selection/Bulk.ts")
const { place } = await source("router/Router.ts")
const { boundTo } = await source("ui/Keys.ts")
const { client } = await source("client/Queries.ts")

const entries = [
  { id: "msg_1", isUnread: true, isFlagged: false },
  { id: "msg_2", isUnread: false, isFlagged: true },
  { id: "thr_3", isUnread: false },
]
let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
  // A deletion waits for 8 seconds.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
})
afterEach(async () => {
  await leaveAll()
  leaving.value = new Set()
  client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** Draws the toolbar over the list of an Identity, and returns what its address names as selected. */
const opened = async (search: string, more: object = {}) => {
  await browserAt(`/identities/ada/mail${search}`)
  const onLeft = vi.fn()
  const shown = await drawn(Selection, { handle: "ada", entries, onLeft, ...more })
  const selected = () => new URLSearchParams(place.value.search).get("selected")
  return { ...shown, onLeft, selected }
}
/** Presses a letter while an entry has the focus. */
const letter = (key: string, focused?: string) => {
  const element = { closest: () => ({ dataset: { entry: focused } }) }
  Object.assign(document, { activeElement: focused === undefined ? null : element })
  return act(() => void boundTo(key)?.())
}

describe("Selected entries", () => {
  it("are named by the address, beside the other filters, each by its own box", async () => {
    await browserAt("/identities/ada/mail?q=invoice&selected=msg_1.gone")
    const box = async (id: string) => {
      const { top, fire } = await drawn(Pick, { id, name: id })
      const [input] = top.all("input")
      return { isOn: input!.attributes["checked"] === "true", toggle: () => fire(input, "change") }
    }
    const [first, second] = [await box("msg_1"), await box("msg_2")]
    expect([first.isOn, second.isOn]).toEqual([true, false])
    await second.toggle()
    expect(place.value.search).toBe("?q=invoice&selected=msg_1.gone.msg_2")
    await first.toggle()
    expect(place.value.search).toBe("?q=invoice&selected=gone.msg_2")
    expect([searchOf(), isSelecting()]).toEqual(["?q=invoice", true])
  })

  it("are all of the list, or none", async () => {
    const { press, selected, top } = await opened("?selected=msg_2")
    expect(top.all({ role: "status" })[0]!.textContent).toBe("1 selected")
    await press("Select all")
    expect(selected()).toBe("msg_1.msg_2.thr_3")
    await press("Clear selection")
    expect([selected(), top.all("button").length]).toEqual([null, 0])
  })

  it.each([
    ["?selected=msg_1.msg_2", "Mark as read", { seen: true }],
    ["?selected=msg_2", "Mark as unread", { seen: false }],
    ["?selected=msg_1.msg_2", "Flag", { flagged: true }],
    ["?selected=msg_2", "Flag", { flagged: false }],
    ["?selected=msg_2", "Archive", { add_labels: ["archived"] }],
    ["?archived=1&selected=msg_2", "Move out of archive", { remove_labels: ["archived"] }],
  ])("%s are changed by %s", async (search, name, change) => {
    const { press, selected } = await opened(search)
    await press(name)
    const { body } = await calls.next()
    const ids = new URLSearchParams(search).get("selected")!.split(".")
    expect([body, selected()]).toEqual([{ ids, threads: [], ...change }, null])
  })

  it("are hidden by Delete until they are gone, and no button seems busy before", async () => {
    const { press, selected, top } = await opened("?selected=msg_1.thr_3")
    expect(top.all({ "aria-busy": "true" })).toEqual([])
    await press("Delete")
    expect([[...leaving.value], selected(), calls.waiting()]).toEqual([["msg_1", "thr_3"], null, 0])
  })

  it("have no flag if one of them is a conversation", async () => {
    const { top } = await opened("?selected=msg_2.thr_3")
    expect(top.all("button").map(({ textContent }) => textContent)).not.toContain("Flag")
    await letter("s")
    const { body } = await calls.next()
    expect(body).toEqual({ ids: ["msg_2"], threads: [], flagged: false })
  })
})

describe("A letter", () => {
  it("is for the selected entries, otherwise for the entry with the focus, otherwise for the open one", async () => {
    const { leave } = await opened("?selected=msg_2", { open: "msg_1" })
    await letter("e", "thr_3")
    expect((await calls.next()).body).toMatchObject({ ids: ["msg_2"], threads: [] })
    await letter("e", "thr_3")
    expect((await calls.next()).body).toMatchObject({ ids: [], threads: ["thr_3"] })
    await letter("u")
    expect((await calls.next()).body).toMatchObject({ ids: ["msg_1"], seen: true })
    await leave()
    // The open message may be missing from the list.
    await opened("", { open: "msg_9" })
    await letter("u")
    expect((await calls.next()).body).toMatchObject({ ids: ["msg_9"], seen: false })
  })

  it("does nothing without an entry, and says nothing", async () => {
    const { Toasts } = await source("ui/Toast.tsx")
    const before = (await drawn(Toasts, {})).top.textContent
    await opened("")
    for (const key of ["e", "u", "s", "#", "x"]) await letter(key)
    expect([calls.waiting(), [...leaving.value]]).toEqual([0, []])
    expect((await drawn(Toasts, {})).top.textContent).toBe(before)
  })

  it("leaves the open message only if this one was archived or deleted", async () => {
    const { onLeft } = await opened("", { open: "msg_1" })
    await letter("e", "msg_2")
    await letter("u")
    expect(onLeft).not.toHaveBeenCalled()
    await letter("e")
    expect(onLeft).toHaveBeenCalledTimes(1)
    await letter("#")
    expect([onLeft.mock.calls.length, [...leaving.value]]).toEqual([2, ["msg_1"]])
    expect(staying(entries).map(({ id }: { id: string }) => id)).toEqual(["msg_2", "thr_3"])
  })

  it("selects the entry with the focus, and only flags without an open message", async () => {
    const { selected } = await opened("?selected=msg_1")
    await letter("x", "msg_2")
    expect(selected()).toBe("msg_1.msg_2")
    await letter("x", "msg_1")
    expect(selected()).toBe("msg_2")
    await leaveAll()
    await opened("", { open: "msg_1" })
    expect(boundTo("s")).toBeUndefined()
  })
})
