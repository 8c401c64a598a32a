/** Components whose state a browser test would pass by: the second letter, the value at the end, a second press. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { Drawn } from "./Drawn.ts"
import { drawn, Entries, heldCalls, leavePage, source } from "./Modules.ts"

const { Chart, roundedUpBytes } = await source("charts/Chart.tsx")
const { binaryBytes } = await source("texts/Texts.ts")
const { Button } = await source("ui/Button.tsx")
const { connection } = await source("client/Live.ts")
const { client } = await source("client/Queries.ts")
const { default: Palette } = await source("shell/palette/Palette.tsx")
const { palette } = await source("shell/Overlays.ts")
const { identitiesInput } = await source("shell/Identities.ts")
const { default: Help } = await source("shell/palette/Help.tsx")
const { letters } = await source("shell/Overlays.ts")

const { place } = await source("router/Router.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
})
afterEach(leavePage)

describe("A chart", () => {
  const chart = async (change: object = {}) => {
    const { top, fire, draw } = await drawn(Chart, {
      title: "Mail",
      kind: "bars",
      times: ["Mon", "Tue", "Wed"],
      format: (value: number) => `${value} m`,
      isReady: true,
      series: [{ label: "Sent", tone: "main", values: [1, 0, 4], whole: "5" }],
      ...change,
    })
    const [plot] = top.all({ role: "slider" })
    const texts = (name: string) => top.all(name).map(({ textContent }) => textContent)
    const at = () => `${plot!.attributes["aria-valuenow"]}: ${plot!.attributes["aria-valuetext"]}`
    return { top, fire, draw, plot: plot!, at, texts, cursor: () => top.all({ class: "cursor" })[0]?.attributes["x"] }
  }

  it("has a round scale, in powers of 1024 if its values are bytes", async () => {
    const scale = async (value: number, format?: object) =>
      (await chart({ series: [{ label: "Sent", tone: "main", values: [value, 0, 0], whole: "" }], ...format })).texts(
        "div",
      )
    for (const [value, text] of [
      [1, "1 m"],
      [6, "10 m"],
      [11, "20 m"],
      [201, "500 m"],
    ] as const)
      expect(await scale(value), text).toContain(text)
    for (const [value, text] of [
      [900, "1,000 B"],
      [1500, "2 KiB"],
      [10 * 1024 ** 3, "10 GiB"],
      [1010 * 1024, "1 MiB"],
    ] as const)
      expect(await scale(value, { format: binaryBytes, roundUp: roundedUpBytes }), text).toContain(text)
  })

  it("moves between its first and last value by key and pointer, and starts at the last", async () => {
    const { fire, plot, at, cursor, texts } = await chart()
    expect([at(), cursor(), texts("li")]).toEqual(["3: Wed: Sent 4 m", undefined, ["Sent 5"]])
    const after = async (key: string) => {
      expect(await fire(plot, "keydown", { key })).toBe(true)
      return `${at()} @${cursor()}`
    }
    expect(await after("ArrowRight")).toBe("3: Wed: Sent 4 m @2")
    expect(await after("ArrowLeft")).toBe("2: Tue: Sent 0 m @1")
    expect(texts("li")).toEqual(["Sent 0 m"])
    expect(await after("Home")).toBe("1: Mon: Sent 1 m @0")
    expect(await after("ArrowLeft")).toBe("1: Mon: Sent 1 m @0")
    expect(await after("End")).toBe("3: Wed: Sent 4 m @2")
    expect(await fire(plot, "keydown", { key: "Tab" })).toBe(false)
    await fire(plot, "keydown", { key: "Escape" })
    expect(cursor()).toBeUndefined()
    for (const [clientX, value] of [
      [-5, 1],
      [0, 1],
      [99, 1],
      [100, 2],
      [299, 3],
      [400, 3],
    ] as const) {
      await fire(plot, "pointermove", { clientX })
      expect(plot.attributes["aria-valuenow"], String(clientX)).toBe(String(value))
    }
    await fire(plot, "pointerleave")
    expect(cursor()).toBeUndefined()
    await fire(plot, "pointerdown", { clientX: 0 })
    await fire(plot, "blur")
    expect(cursor()).toBeUndefined()
  })

  it("draws its limit over the whole width, at its height below the top", async () => {
    const limit = { value: 5, label: "Limit" }
    const { top, texts } = await chart({ limit })
    const [scale] = top.all({ class: "scale muted small number" })
    const height = Number(top.all("svg")[0]!.attributes["viewBox"]!.split(" ")[3])
    const highest = Number(scale!.textContent.replace(" m", ""))
    expect(highest).toBeGreaterThanOrEqual(5)
    expect(top.all({ class: "limit" })[0]!.attributes["d"]).toBe(`M0 ${height * (1 - 5 / highest)}H3`)
    expect(texts("li")).toEqual(["Sent 5", "Limit 5 m"])
  })

  it("says that it has no values only once it has read them", async () => {
    const empty = [{ label: "Sent", tone: "main", values: [null, 0, null], whole: "0" }]
    const nothing = (top: Drawn) => top.all({ class: "nothing muted small" }).length
    expect(nothing((await chart({ series: empty })).top)).toBe(1)
    expect(nothing((await chart({ series: empty, isReady: false })).top)).toBe(0)
    expect(nothing((await chart()).top)).toBe(0)
  })

  it("is a table with the newest value first", async () => {
    const { top, fire, texts } = await chart({
      series: [{ label: "Sent", tone: "main", values: [1, null], whole: "" }],
    })
    const [button] = top.all({ class: "link" })
    expect([button!.attributes["aria-expanded"], texts("td")]).toEqual(["false", []])
    await fire(button, "click")
    expect([button!.attributes["aria-expanded"], texts("td")]).toEqual(["true", ["Wed", "–", "Tue", "–", "Mon", "1 m"]])
    await fire(button, "click")
    expect(texts("td")).toEqual([])
  })

  it("forgets a value that a shorter period does not have", async () => {
    const { fire, plot, draw, at, cursor } = await chart()
    await fire(plot, "keydown", { key: "End" })
    await draw({
      title: "Mail",
      kind: "bars",
      times: ["Mon", "Tue"],
      format: String,
      isReady: true,
      series: [{ label: "Sent", tone: "main", values: [1, 0], whole: "1" }],
    })
    expect([at(), cursor()]).toEqual(["2: Tue: Sent 0", undefined])
  })
})

describe("A button", () => {
  it.each([
    ["if it is idle", { busy: false }, "live", 1, undefined],
    ["not while it is busy", { busy: true }, "live", 0, "true"],
    ["not without the service that it needs", { busy: false }, "offline", 0, "true"],
    ["without a service that it does not need", {}, "offline", 1, undefined],
  ] as const)("can be pressed %s", async (_, props, state, presses, disabled) => {
    connection.value = state
    try {
      const onClick = vi.fn()
      const { top, fire } = await drawn(Button, { ...props, onClick, children: "Save" })
      const [button] = top.all("button")
      await fire(button, "click")
      expect([onClick.mock.calls.length, button!.attributes["aria-disabled"]]).toEqual([presses, disabled])
      expect([button!.attributes["type"], button!.textContent]).toEqual(["button", "Save"])
    } finally {
      connection.value = "connecting"
    }
  })

  it("runs its command", async () => {
    const run = vi.fn(async () => true)
    const { top, fire } = await drawn(Button, { command: { run, busy: false }, children: "Save" })
    await fire(top.all("button")[0], "click")
    expect(run).toHaveBeenCalledWith()
  })
})

describe("The command palette", () => {
  const opened = async () => {
    vi.stubGlobal("location", { pathname: "/console/", search: "" })
    const history = {
      state: null as unknown,
      pushState: (state: unknown, _: string, to: string) => {
        history.state = state
        location.pathname = to
      },
      replaceState: (state: unknown) => {
        history.state = state
      },
    }
    vi.stubGlobal("history", history)
    client.setQueryData(["GET /api/identities", identitiesInput], {
      identities: [{ handle: "ada" }, { handle: "adam" }],
    })
    palette.value = true
    const { top, fire } = await drawn(Palette, {})
    const input = () => top.all("input")[0]
    const options = () => top.all({ role: "option" }).map(({ textContent }) => textContent)
    const selected = () => top.all({ role: "option", "aria-selected": "true" }).map(({ textContent }) => textContent)
    const type = (value: string) => fire(input(), "input", { currentTarget: { value } })
    const press = (key: string) => fire(input(), "keydown", { key })
    return { top, fire, input, options, selected, type, press }
  }

  it("selects the first entry again with each letter, and stays within its entries", async () => {
    const { options, selected, type, press, input, top } = await opened()
    await type("ada")
    const [first, second] = options()
    expect(options().length).toBeGreaterThan(2)
    expect(selected()).toEqual([first])
    await press("ArrowUp")
    expect(selected()).toEqual([first])
    await press("ArrowDown")
    expect(selected()).toEqual([second])
    expect(input()!.attributes["aria-activedescendant"]).toBe("palette-1")
    await type("ad")
    expect(selected()).toEqual([options()[0]])
    for (const _ of options()) await press("ArrowDown")
    await press("ArrowDown")
    expect(selected()).toEqual([options().at(-1)])
    await type("no such thing")
    expect([options(), input()!.attributes["aria-activedescendant"]]).toEqual([[], undefined])
    expect(top.all("p").length).toBe(1)
    await press("Enter")
    expect(palette.value).toBe(false)
  })

  it("ranks the start of a text, then of its words, then of other names, then parts of words", async () => {
    const { options, type } = await opened()
    await type("ADA")
    expect(options().slice(0, 2)).toEqual(["ada", "adam"])
    await type("ada webh")
    expect(options()[0]).toBe("Webhooks of ada")
    await type("quota")
    expect(options()).toEqual(["Limits & usage"])
    await type("imits")
    expect(options()).toEqual(["Limits & usage"])
    await type("  ")
    expect(options().length).toBe(12)
  })

  it("goes to the selected entry and closes", async () => {
    const { type, press, fire, top } = await opened()
    await type("adam")
    await press("ArrowDown")
    await press("Enter")
    expect([palette.value, place.value.path]).toEqual([false, "/identities/adam/mail"])
    palette.value = true
    await type("adam")
    await fire(top.all({ role: "option" })[0], "click")
    expect([palette.value, place.value.path]).toEqual([false, "/identities/adam"])
    palette.value = true
    const [dialog] = top.all("dialog")
    await fire(dialog, "click", { target: top.all("input")[0] })
    expect(palette.value).toBe(true)
    await fire(dialog, "click")
    expect(palette.value).toBe(false)
    palette.value = true
    expect(await fire(dialog, "cancel")).toBe(true)
    expect(palette.value).toBe(false)
    expect(calls.all.length).toBe(0)
  })
})

it("The list of shortcuts shows whether single letters are on, and turns them on and off", async () => {
  vi.stubGlobal("localStorage", new Entries())
  const { top, fire, leave } = await drawn(Help, {})
  const [box] = top.all({ type: "checkbox" })
  const isOn = () => box!.attributes["checked"]
  expect(isOn()).toBe("true")
  await fire(box, "change", { currentTarget: { checked: false } })
  expect([isOn(), letters.value]).toEqual([undefined, false])
  await fire(box, "change", { currentTarget: { checked: true } })
  expect([isOn(), letters.value]).toEqual(["true", true])
  await leave()
})
