/** What the entries of the command palette do, without a browser. */
import { h } from "preact"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { drawn, Entries, heldCalls, leavePage, source } from "./Modules.ts"

const { client } = await source("client/Queries.ts")
const { default: Palette } = await source("shell/palette/Palette.tsx")
const { palette } = await source("shell/Overlays.ts")
const { identitiesInput } = await source("shell/Identities.ts")
const { place, routeOf } = await source("router/Router.ts")
const { routes } = await source("Routes.ts")
const { storeUnsavedFor, unsavedInput } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
})
afterEach(async () => {
  await leavePage()
  palette.value = false
})

describe("The entries of the command palette", () => {
  const opened = async () => {
    vi.stubGlobal("location", { pathname: "/console/", search: "" })
    const pushState = (_: unknown, __: string, to: string) => void Object.assign(location, { pathname: to })
    vi.stubGlobal("history", { state: { key: "here" }, pushState, replaceState: () => {} })
    client.setQueryData(["GET /api/identities", identitiesInput], { identities: [{ handle: "ádam" }] })
    palette.value = true
    const shown = await drawn(Palette, {})
    const input = () => shown.top.all("input")[0]
    const options = () => shown.top.all({ role: "option" })
    const type = (value: string) => shown.fire(input(), "input", { currentTarget: { value } })
    return { ...shown, input, options, type, run: () => shown.fire(input(), "keydown", { key: "Enter" }) }
  }

  it("lead to pages that exist, each to another one", async () => {
    const { type, options, fire } = await opened()
    const reached = new Set<string>()
    const texts = new Set<string>()
    // Accents and case make no difference.
    for (const typed of [
      "ADAM",
      "adam settings",
      "adam pro",
      "adam webhook",
      "adam tunnel",
      "adam connect",
      "adam program",
      "adam draft",
      "adam approv",
      "",
      "export",
      "terms",
      "audit",
      "limits",
      "device",
      "new",
    ]) {
      await type(typed)
      for (const [at] of options().entries()) {
        const name = options()[at]!.textContent
        place.value = { path: "/nowhere", search: "" }
        await fire(options()[at], "click")
        if (place.value.path === "/nowhere") continue
        texts.add(name)
        reached.add(place.value.path)
        expect(routeOf(routes, place.value.path)?.path, name).toBeDefined()
        expect(routeOf(routes, place.value.path)?.path, name).not.toMatch(/mail\/:id$|activity\/:id$|keys\/:id$/)
      }
    }
    expect([reached.size, texts.size > 20]).toEqual([texts.size, true])
  })

  it("are selected by the pointer, and keys that act on the list do not reach the field", async () => {
    const { type, options, fire, input } = await opened()
    await type("ad")
    await fire(options()[1], "pointermove")
    expect(input()!.attributes["aria-activedescendant"]).toBe("palette-1")
    const prevented = []
    for (const key of ["ArrowDown", "ArrowUp", "Enter", "a"]) prevented.push(await fire(input(), "keydown", { key }))
    expect(prevented).toEqual([true, true, true, false])
  })

  it("stop all mail, open the documentation, and sign out after a question", async () => {
    const { type, run } = await opened()
    await type("kill switch")
    await run()
    const stop = await calls.next()
    expect([stop.method, stop.url, stop.body]).toEqual(["PATCH", "/api/account/mail", { outgoing: "stopped" }])
    const open = vi.fn()
    vi.stubGlobal("window", { open })
    await type("documentation")
    await run()
    expect(open).toHaveBeenCalledWith("/docs/", "_blank", "noopener")
    vi.stubGlobal("localStorage", new Entries())
    vi.stubGlobal(
      "confirm",
      vi.fn(() => false),
    )
    storeUnsavedFor("ada")
    unsavedInput("reply").write("Dear Bob")
    await type("sign out")
    await run()
    expect([vi.mocked(confirm).mock.calls.length, calls.waiting()]).toEqual([1, 0])
    storeUnsavedFor(undefined)
  })

  it("give the focus back when the palette closes", async () => {
    const { leave } = await opened()
    await leave()
    const before = new Drawn("button")
    const focus = vi.spyOn(before, "focus")
    const page = await drawn<{ isOpen: boolean }>(({ isOpen }) => (isOpen ? h(Palette, {}) : null), { isOpen: false })
    Object.assign(document, { activeElement: before })
    await page.draw({ isOpen: true })
    await page.draw({ isOpen: false })
    expect(focus).toHaveBeenCalledTimes(1)
  })
})
