/** Filters of a list, without a browser. */
import { afterEach, expect, it, vi } from "vitest"
import { drawn, leaveAll, source } from "./Modules.ts"

const { Filter } = await source("ui/Filter.tsx")
const { place } = await source("router/Router.ts")

afterEach(async () => {
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
