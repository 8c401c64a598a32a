/** Dialogs without a browser: what closes them, and what they ask before. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, leaveAll, source } from "./Modules.ts"

const { ConfirmButton, Dialog, FormDialog } = await source("ui/Dialog.tsx")
const { CommandForm } = await source("ui/Form.tsx")

afterEach(async () => {
  await leaveAll()
  vi.unstubAllGlobals()
})

describe("A dialog", () => {
  it("closes by Escape, its own button and a press beside it, unless it is firm", async () => {
    const onClose = vi.fn()
    for (const [firm, times] of [
      [false, [1, 2, 2, 3]],
      [true, [0, 0, 0, 0]],
    ] as const) {
      onClose.mockClear()
      const { top, fire, button, press, leave } = await drawn(Dialog, { title: "T", firm, onClose, children: "x" })
      const dialog = top.all("dialog")[0]!
      const closed: Array<number> = []
      const then = () => closed.push(onClose.mock.calls.length)
      // The browser would close the element although it is still rendered.
      expect(await fire(dialog, "cancel")).toBe(true)
      then()
      await fire(dialog, "click", { target: dialog })
      then()
      await fire(dialog, "click", { target: dialog.all("h2")[0] })
      then()
      expect(button("Close") === undefined).toBe(firm)
      if (!firm) await press("Close")
      then()
      expect(closed).toEqual(times)
      await leave()
    }
  })

  it("of a form asks before it discards what was entered", async () => {
    const [onClose, discard, run] = [vi.fn(), vi.fn(), vi.fn(() => Promise.resolve(true))]
    const asked = vi.fn(() => false)
    let isChanged = true
    const form = { isRestored: false, isChanged: () => isChanged, discard }
    const command = { run, busy: false, failure: undefined, form }
    const { press } = await drawn(FormDialog, { title: "T", doing: "Save", command, onClose, children: "x" })
    vi.stubGlobal("confirm", asked)
    await press("Close")
    expect([asked.mock.calls.length, discard.mock.calls.length, onClose.mock.calls.length]).toEqual([1, 0, 0])
    asked.mockReturnValue(true)
    await press("Close")
    expect([asked.mock.calls.length, discard.mock.calls.length, onClose.mock.calls.length]).toEqual([2, 1, 1])
    isChanged = false
    await press("Close")
    expect([asked.mock.calls.length, discard.mock.calls.length, onClose.mock.calls.length]).toEqual([2, 2, 2])
  })
})

it("A form discards what was entered when it is cancelled, and keeps it when its command failed", async () => {
  const [discard, onCancel, onDone] = [vi.fn(), vi.fn(), vi.fn()]
  const run = vi.fn(() => Promise.resolve(false))
  const form = { isRestored: false, isChanged: () => true, discard }
  const command = { run, busy: false, failure: undefined, form }
  const { press, submit } = await drawn(CommandForm, { command, doing: "Save", onCancel, onDone, children: "x" })
  await submit()
  expect([run.mock.calls.length, discard.mock.calls.length, onDone.mock.calls.length]).toEqual([1, 0, 0])
  await press("Cancel")
  expect([discard.mock.calls.length, onCancel.mock.calls.length]).toEqual([1, 1])
})

describe("A button that asks for confirmation", () => {
  const run = vi.fn(() => Promise.resolve(true))
  const asked = { doing: "Remove", command: { run, busy: false, failure: undefined }, children: "Sure?" }

  beforeEach(() => void run.mockClear())

  it("stays open while its command fails, and gives the focus back when it is cancelled", async () => {
    const { top, press, leave } = await drawn(ConfirmButton, asked)
    const before = top.all("button")[0]!
    const focused = vi.spyOn(before, "focus")
    Object.assign(document, { activeElement: before })
    await press("Remove")
    run.mockResolvedValueOnce(false)
    await press("Remove")
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1))
    expect(top.all("dialog")).toHaveLength(1)
    await press("Cancel")
    expect([top.all("dialog"), focused.mock.calls.length]).toEqual([[], 1])
    await leave()
  })

  it("cannot be pressed while it is disabled", async () => {
    const { top, draw, leave } = await drawn<object>(ConfirmButton, { ...asked, disabled: true })
    const isOff = () => {
      const [button] = top.all("button") as unknown as ReadonlyArray<{ disabled?: unknown; attributes: object }>
      return Boolean(button!.disabled ?? "disabled" in button!.attributes)
    }
    expect(isOff()).toBe(true)
    await draw(asked)
    expect(isOff()).toBe(false)
    await leave()
  })

  it("runs its command only after the confirmation, and closes", async () => {
    const { top, fire, leave } = await drawn(ConfirmButton, { ...asked, typed: "ada" })
    await fire(top.all("button")[0], "click")
    const confirm = () => top.all("button").at(-1)!
    await fire(top.all("input")[0], "input", { currentTarget: { value: "ada" } })
    expect(run).not.toHaveBeenCalled()
    await fire(confirm(), "click")
    await vi.waitFor(() => expect(top.all("dialog")).toEqual([]))
    expect(run).toHaveBeenCalledTimes(1)
    await leave()
  })

  it.each([
    ["ada", false],
    [" ADA ", false],
    ["adam", true],
    ["ad", true],
    ["", true],
  ])("with a text to type is ready after %j: %s", async (text, isOff) => {
    const { fire, top, button } = await drawn(ConfirmButton, { ...asked, typed: "Ada" })
    await fire(top.all("button")[0], "click")
    await fire(top.all("input")[0], "input", { currentTarget: { value: text } })
    const { disabled, attributes } = button("Remove") as unknown as { disabled?: boolean; attributes: object }
    expect(disabled ?? "disabled" in attributes).toBe(isOff)
  })

  it("has a dialog with a name, the kind of its command and why that failed", async () => {
    const confirmed = async (props: object) => {
      const { top, press, button } = await drawn(ConfirmButton, { ...asked, ...props })
      await press("name" in props ? String(props.name) : "Remove")
      const [dialog] = top.all("dialog")
      const name = dialog!.all({ id: dialog!.attributes["aria-labelledby"]! })[0]?.textContent
      return [name, button("Remove")!.attributes["data-kind"], dialog!.textContent.includes("It is in use")]
    }
    const failure = new Error("It is in use")
    expect(await confirmed({})).toEqual(["Remove", "primary", false])
    expect(await confirmed({ kind: "danger", title: "Remove ada?" })).toEqual(["Remove ada?", "fatal", false])
    expect(await confirmed({ name: "Remove this one", command: { ...asked.command, failure } })).toEqual([
      "Remove",
      "primary",
      true,
    ])
  })
})
