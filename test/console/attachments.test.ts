/** The attachments of a draft, without a browser: what is read, what is refused, and what is shown of them. */
import { h } from "preact"
import { useState } from "preact/hooks"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, eventually, leavePage, source } from "./Modules.ts"

const { Files, useFiles } = await source("compose/Files.tsx")
const { attached, described, previewOf, sizeOf } = await source("compose/attaching.ts")

interface File {
  readonly name: string
  readonly size: number
  readonly type: string
}
/** The reads of files, which the test ends. */
let reads: Array<{ readonly file: File; readonly event: (type: string, more?: object) => Promise<void> }>
beforeEach(() => {
  reads = []
  vi.stubGlobal(
    "FileReader",
    class extends EventTarget {
      result = "data:text/plain;base64,QUI="
      error = undefined
      readAsDataURL(file: File) {
        const event = (type: string, more: object = {}) =>
          act(async () => void this.dispatchEvent(Object.assign(new Event(type), more)))
        reads.push({ file, event })
      }
    },
  )
})
afterEach(leavePage)

const file = (name: string, size = 2, type = "text/plain"): File => ({ name, size, type })
const stored = (filename: string, size = 3, content_type = "text/plain") => ({
  filename,
  content_type,
  content_base64: "QUJD".repeat(size / 3),
})
const read = async (name: string) => {
  const find = () => reads.find((one) => one.file.name === name)
  await eventually(() => expect(find(), name).toBeDefined())
  return find()!
}

describe("The attachments of a draft", () => {
  const opened = async (...before: ReadonlyArray<object>) => {
    const beforeReading = vi.fn()
    const Draft = () => {
      const [value, setValue] = useState(before)
      const of = useFiles(value, setValue, beforeReading)
      return h("div", { class: "target", ...of.target }, h(Files, { of }))
    }
    const page = await drawn(Draft, {})
    const { top, fire } = page
    const control = { files: [] as ReadonlyArray<File>, value: "a path" }
    const choose = (...files: ReadonlyArray<File>) =>
      fire(top.all({ type: "file" })[0], "change", { currentTarget: Object.assign(control, { files }) })
    const [target] = top.all({ class: "target" })
    return {
      ...page,
      beforeReading,
      choose,
      control,
      target: (type: string, more: object) => fire(target, type, more),
      rows: () => top.all("li").map(({ textContent }) => textContent),
      alert: () => top.all({ role: "alert" })[0]?.textContent,
    }
  }

  it("are all that were chosen, with the progress of the one that is being read", async () => {
    const { beforeReading, choose, control, rows, top } = await opened(stored("old.txt"))
    expect(top.textContent).toContain("3 bytes of 7 MB")
    await choose(file("a.txt"), file("b.txt"))
    // The same file can be chosen again after it was removed.
    expect([beforeReading.mock.calls.length, control.value]).toEqual([1, ""])
    const progress = () => [top.all("progress")[0]?.attributes["value"], top.all("label").at(-1)!.textContent]
    await (await read("a.txt")).event("progress", { loaded: 1, total: 4 })
    expect(progress()).toEqual(["0.25", "Reading a.txt"])
    await reads[0]!.event("progress", { loaded: 0, total: 0 })
    expect(progress()[0]).toBe("1")
    await reads[0]!.event("load")
    await (await read("b.txt")).event("load")
    await eventually(() => expect(top.all("progress")).toEqual([]))
    expect(rows()).toEqual(["old.txt3 bytes", "a.txt2 bytes", "b.txt2 bytes"])
  })

  it("show small pictures, and each has a button that removes this one", async () => {
    const { press, rows, top } = await opened(stored("a.png", 3, "image/png"), stored("b.txt"))
    expect(top.all("img").map(({ attributes }) => attributes["src"])).toEqual(["data:image/png;base64,QUJD"])
    await press("Remove a.png")
    expect(rows()).toEqual(["b.txt3 bytes"])
    await press("Remove b.txt")
    expect([rows(), top.textContent]).toEqual([[], expect.stringContaining("Up to 7 MB in total")])
  })

  it("are refused with the reason if they are too large, too many or unreadable, until others are chosen", async () => {
    const { alert, beforeReading, choose, rows } = await opened(stored("old.txt", 3_000_000))
    expect(alert()).toBeUndefined()
    await choose(file("a.txt", 4_000_001))
    expect(alert()).toBe("These attachments have 7 MB in total. The limit is 7 MB.")
    await choose(...Array.from({ length: 50 }, (_, n) => file(`${n}`)))
    expect([alert(), beforeReading.mock.calls.length]).toEqual(["You can attach up to 50 files.", 0])
    await choose(file("b.txt", 4_000_000))
    expect(alert()).toBeUndefined()
    await (await read("b.txt")).event("error")
    await eventually(() => expect(alert()).toBe("The file cannot be read."))
    expect(rows().length).toBe(1)
    await choose(...Array.from({ length: 49 }, (_, n) => file(`${n}`)))
    expect(alert()).toBeUndefined()
  })

  it.each([
    ["drop", "dataTransfer"],
    ["paste", "clipboardData"],
  ])("are taken by a %s of files, and of nothing else", async (type, member) => {
    const { target } = await opened()
    expect(await target(type, { [member]: { files: [] } })).toBe(false)
    expect(await target(type, { [member]: null })).toBe(false)
    expect(await target(type, { [member]: { files: [file("a.txt")] } })).toBe(true)
    await (await read("a.txt")).event("load")
    expect(reads.length).toBe(1)
    // An element that prevents the default action can be dropped on.
    expect(await target("dragover", { dataTransfer: { types: ["text/plain"] } })).toBe(false)
    expect(await target("dragover", { dataTransfer: { types: ["text/plain", "Files"] } })).toBe(true)
  })
})

it.each([
  ["", 0],
  ["QQ==", 1],
  ["QUI=", 2],
  ["QUJD", 3],
  ["QUJDQQ==", 4],
])("The base64 %j has %d bytes", (content_base64, size) => expect(sizeOf({ content_base64 })).toBe(size))

it.each([
  ["image/png", 3_000_000, true],
  ["image/webp", 3, true],
  ["image/png", 3_000_003, false],
  // It can run scripts.
  ["image/svg+xml", 3, false],
  ["text/plain", 3, false],
])("A file of the type %s with %d bytes has a preview: %s", (type, size, has) =>
  expect(previewOf(stored("a", size, type)) !== undefined).toBe(has),
)

it.each([
  ["plan.pdf", "application/pdf; a=b", "plan.pdf", "application/pdf"],
  [" two\r\n lines\u2028.txt ", "text/plain", "two  lines .txt", "text/plain"],
  [" \n ", "", "attachment", "application/octet-stream"],
  ["a".repeat(201), "text", "a".repeat(200), "application/octet-stream"],
  ["a", "text/html\r\nX-Own: 1", "a", "application/octet-stream"],
])("The file %j of the type %j is attached as %j of the type %j", (name, type, filename, content_type) =>
  expect(described(name, type)).toEqual({ filename, content_type }),
)

it("A file that cannot be read fails with the reason of the browser", async () => {
  const reading = attached(file("a"), "a", "text/plain").catch((cause: Error) => cause.message)
  await reads[0]!.event("progress", { loaded: 1, total: 2 })
  await reads[0]!.event("error")
  expect(await reading).toBe("the file cannot be read")
})
