/** Filters of lists, without a browser. */
import { act } from "preact/test-utils"
import { afterEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, leaveAll, source } from "./Modules.ts"

const { Filter } = await source("ui/Filter.tsx")
const { Filters, narrowed } = await source("mail/Filters.tsx")
const { go, place } = await source("router/Router.ts")

afterEach(async () => {
  vi.useRealTimers()
  await leaveAll()
  vi.unstubAllGlobals()
})

it("A filter changes its own parameter of the current history entry, so that Back leaves the list", async () => {
  vi.stubGlobal("location", { pathname: "/console/events", search: "" })
  const to = (_: unknown, _title: string, target?: string) => {
    if (target !== undefined) location.search = new URL(target, "http://localhost").search
  }
  const history = { state: { key: "here" }, pushState: vi.fn(to), replaceState: vi.fn(to) }
  vi.stubGlobal("history", history)
  place.value = { path: "/events", search: "?handle=ada&type=old" }
  const { top, fire } = await drawn(Filter, { name: "type", label: "Type", any: "All", values: ["old", "new"] })
  const choose = (value: string) => fire(top.all("select")[0], "change", { currentTarget: { value } })
  await choose("new")
  expect(place.value).toEqual({ path: "/events", search: "?handle=ada&type=new" })
  await choose("")
  expect(place.value).toEqual({ path: "/events", search: "?handle=ada" })
  expect(history.pushState).not.toHaveBeenCalled()
})

describe("The filters of messages", () => {
  const opened = async (search: string) => {
    await browserAt(`/identities/ada/mail${search}`)
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const { top, fire, button, press } = await drawn(Filters, {})
    const input = () => top.all({ type: "search" })[0]!
    return {
      button,
      press,
      typed: () => input().attributes["value"] ?? "",
      type: (value: string) => fire(input(), "input", { currentTarget: { value } }),
      after: (millis: number) => act(async () => void (await vi.advanceTimersByTimeAsync(millis))),
    }
  }
  const search = () => place.value.search

  it("search once a person stops typing, and not for a space", async () => {
    const { type, after, typed } = await opened("?unread=1")
    await type("pla")
    await after(299)
    await type(" plans ")
    await after(299)
    expect(search()).toBe("?unread=1")
    await after(1)
    expect(search()).toBe("?unread=1&q=plans")
    // The field keeps the typed text, including a space at its end.
    await type("plans ")
    await after(300)
    expect([search(), typed()]).toEqual(["?unread=1&q=plans", "plans "])
    await act(() => go("/identities/ada/mail?q=other"))
    expect(typed()).toBe("other")
    await type("")
    await after(300)
    expect(search()).toBe("")
  })

  it("are turned on and off one by one", async () => {
    const { press, button } = await opened("?tag=shop&label=done")
    const isOn = (name: string) => button(name)!.attributes["aria-pressed"]
    for (const [name, on] of [
      ["Unread", "?tag=shop&label=done&unread=1"],
      ["Flagged", "?tag=shop&label=done&flagged=1"],
    ] as const) {
      expect(isOn(name)).toBe("false")
      await press(name)
      expect([search(), isOn(name)]).toEqual([on, "true"])
      await press(name)
      expect(search()).toBe("?tag=shop&label=done")
    }
    await press("Remove filter done")
    expect(search()).toBe("?tag=shop")
    await press("Remove filter shop")
    expect([search(), button("Remove filter shop")]).toEqual(["", undefined])
  })

  it.each([
    ["?q=plans", { query: "plans" }],
    ["?direction=inbound", { direction: "inbound" }],
    ["?direction=outbound", { direction: "outbound" }],
    ["?direction=sideways", undefined],
    ["?unread=1", { seen: false }],
    ["?flagged=1", { flagged: true }],
    ["?tag=shop", { tag: "shop" }],
    ["?label=done", { label: "done" }],
    ["?q=&label=&folder=x", undefined],
    ["?unread=1&label=done&tag=shop", { seen: false, label: "done", tag: "shop" }],
  ])("are read from the address (%s)", async (address, asked) => {
    await browserAt(`/identities/ada/mail${address}`)
    expect(narrowed()).toEqual(asked)
  })
})
