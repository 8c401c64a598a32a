/** The field for recipients, without a browser: what becomes a recipient, and which one is removed. */
import { afterEach, expect, it, vi } from "vitest"
import { drawn, leaveAll, source } from "./Modules.ts"

const { PeopleField } = await source("compose/PeopleField.tsx")

const known: ReadonlyArray<object> = [
  ...["ada@example.org", "adam@example.org", "grace@example.org"].map((address) => ({ address, name: null })),
  ...["1", "2", "3", "4", "5", "6", "7"].map((n) => ({ address: `${n}@many.example`, name: `Nina ${n}` })),
]

let value: ReadonlyArray<string>
afterEach(async () => {
  await leaveAll()
  vi.unstubAllGlobals()
})

const opened = async (...start: ReadonlyArray<string>) => {
  value = start
  const props = () => ({
    label: "To",
    value,
    judged: [{ address: "two@example.org", is: "not_allowed" }],
    known,
    onValue: (next: ReadonlyArray<string>) => void (value = next),
  })
  const { top, fire, draw } = await drawn(PeopleField, props())
  const input = () => top.all("input")[0]
  const after = async (prevented: Promise<boolean>) => {
    const found = await prevented
    await draw(props())
    return found
  }
  return {
    top,
    chips: () => top.all({ class: "tag chip" }),
    suggested: () => top.all({ role: "option" }).map(({ textContent }) => textContent),
    selected: () => top.all({ role: "option", "aria-selected": "true" }).map(({ textContent }) => textContent),
    click: (element: Parameters<typeof fire>[0]) => after(fire(element, "click")),
    type: (text: string) => after(fire(input(), "input", { currentTarget: { value: text } })),
    press: (key: string, more = {}) => after(fire(input(), "keydown", { key, stopPropagation: () => {}, ...more })),
    paste: (text: string) => after(fire(input(), "paste", { clipboardData: { getData: () => text } })),
    leave: () => after(fire(input(), "blur")),
  }
}

it("Each recipient has a button that removes this one, and Backspace in an empty field removes the last", async () => {
  const { top, chips, click, press, type } = await opened("one@example.org", "two@example.org", "three@example.org")
  expect(chips().map(({ attributes }) => attributes["data-tone"])).toEqual([undefined, "bad", undefined])
  // The warning is a second icon, and a text for screen readers.
  expect(chips().map((chip) => chip.all("svg").length)).toEqual([1, 2, 1])
  expect(chips().map((chip) => chip.all({ class: "hidden-text" })[0]?.textContent)).toEqual([
    undefined,
    "is not an Allowed Recipient",
    undefined,
  ])
  await click(top.all({ "aria-label": "Remove two@example.org" })[0])
  expect(value).toEqual(["one@example.org", "three@example.org"])
  await type("a")
  await press("Backspace")
  expect(value.length).toBe(2)
  await type("")
  await press("Backspace")
  expect(value).toEqual(["one@example.org"])
})

it("A recipient is taken at Enter, a comma, a space after an address, a paste of several, and leaving the field, each once", async () => {
  const { type, press, paste, leave } = await opened()
  await type("a@example.org,b@example.org")
  await type("c@example.org")
  expect(await press(" ")).toBe(true)
  await type("d@example.org")
  expect(await press("Enter")).toBe(true)
  expect(await paste("E <e@example.org>; a@example.org")).toBe(true)
  // One address is pasted as text.
  expect(await paste("f@example.org")).toBe(false)
  await type("g@example.org")
  await leave()
  expect(value.map((address) => address[0])).toEqual(["a", "b", "c", "d", "e", "g"])
  // Ctrl+Enter sends the mail. A name may contain a space.
  await type("h@example.org")
  expect(await press("Enter", { ctrlKey: true })).toBe(false)
  expect(value.at(-1)).toBe("g@example.org")
  await type("Ada")
  expect(await press(" ")).toBe(false)
})

it("Suggestions are chosen with the arrow keys and taken with Enter or Tab, unless a complete address was typed", async () => {
  const { type, press, suggested, selected } = await opened()
  await type("ada")
  expect([suggested(), selected()]).toEqual([["ada@example.org", "adam@example.org"], ["ada@example.org"]])
  await press("ArrowUp")
  expect(selected()).toEqual(["adam@example.org"])
  await press("ArrowDown")
  expect(selected()).toEqual(["ada@example.org"])
  await press("Enter")
  expect([value, suggested()]).toEqual([["ada@example.org"], []])
  await type("ada")
  expect(suggested()).toEqual(["adam@example.org"])
  expect(await press("Tab", { shiftKey: true })).toBe(false)
  expect(await press("Tab")).toBe(true)
  expect(value).toEqual(["ada@example.org", "adam@example.org"])
  await type("ace@example.org")
  await press("Enter")
  expect(value.at(-1)).toBe("ace@example.org")
  await type("gra")
  expect(await press("Escape")).toBe(true)
  expect([suggested(), await press("Escape"), await press("ArrowDown")]).toEqual([[], false, false])
})

it("The first press of the down arrow chooses the second suggestion, since the first one is already selected", async () => {
  const { top, type, press, selected } = await opened()
  const expanded = () => top.all("input")[0]!.attributes["aria-expanded"]
  expect(expanded()).toBe("false")
  await type("ada")
  expect(expanded()).toBe("true")
  expect(await press("ArrowDown")).toBe(true)
  expect(selected()).toEqual(["adam@example.org"])
  await press("Enter", { metaKey: true })
  expect(value).toEqual([])
  await type("adam")
  expect(selected()).toEqual(["adam@example.org"])
})

it("The arrow keys go through all suggestions, at most six, and the field names the selected one", async () => {
  const { top, type, press, suggested, selected } = await opened()
  await type("nina")
  expect(suggested()).toEqual(["1", "2", "3", "4", "5", "6"].map((n) => `Nina ${n}${n}@many.example`))
  const at = () => {
    const [one] = top.all({ role: "option", "aria-selected": "true" })
    expect(top.all("input")[0]!.attributes).toMatchObject({
      "aria-activedescendant": one!.attributes["id"],
      "aria-expanded": "true",
    })
    expect(top.all({ role: "listbox" })[0]!.attributes["hidden"]).toBeUndefined()
    return selected()[0]![5]
  }
  const seen = [at()]
  for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"]) {
    await press(key)
    seen.push(at())
  }
  expect(seen).toEqual(["1", "2", "3", "2", "1", "6", "5", "6", "1"])
  await press("ArrowDown")
  // Fewer are left after another letter.
  await type("3")
  expect(at()).toBe("3")
  await type("")
  expect([suggested(), top.all("input")[0]!.attributes["aria-activedescendant"]]).toEqual([[], undefined])
})

it("A chosen suggestion replaces a complete address, and a click takes one", async () => {
  const { top, type, press, click, suggested } = await opened()
  await type("1@many.ex")
  await press("Enter")
  expect(value).toEqual(["1@many.ex"])
  await press("Backspace")
  await type("1@many.ex")
  await press("ArrowUp")
  await press("Enter")
  expect(value).toEqual(["1@many.example"])
  await type("many")
  await click(top.all({ role: "option" })[1])
  expect([value.at(-1), suggested()]).toEqual(["3@many.example", []])
  // What leads nowhere is taken as it was typed.
  await type("nobody")
  expect(await press("Tab")).toBe(false)
  await press("Enter")
  expect(value.at(-1)).toBe("nobody")
})
