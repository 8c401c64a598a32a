/** Changes of many messages at once, and of those that are deleted after a while, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, Entries, eventually, heldCalls, leaveAll, source } from "./Modules.ts"

const { archive, flag, leaving, mark, remove } = await source("mail/selection/Bulk.ts")
const { Toasts } = await source("ui/Toast.tsx")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] })
})
afterEach(async () => {
  await leaveAll()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
const after = (millis: number) => vi.advanceTimersByTimeAsync(millis)
const settled = () => after(0)

describe("A change of many messages", () => {
  const at = "/api/identities/ada/messages"
  const ids = (count: number) => Array.from({ length: count }, (_, n) => `${n % 2 === 0 ? "msg" : "thr"}_${n}`)
  const done = async (changed: ReadonlyArray<string>, more = false) => {
    const request = await calls.next()
    request.answer(200, { changed, more })
    await settled()
    return request
  }
  const toasts = async () => {
    const shown = await drawn(Toasts, {})
    const [last] = shown.top.all({ class: "toast" }).toReversed()
    const undo = () => shown.fire(last!.all("button")[0], "click")
    return { text: last?.all("span")[0]!.textContent, undo, leave: shown.leave }
  }

  it.each([
    ["marked as read", () => mark("ada", ["msg_1"], true), { seen: true }, { seen: false }],
    ["marked as unread", () => mark("ada", ["msg_1"], false), { seen: false }, { seen: true }],
    ["flagged", () => flag("ada", ["msg_1"], true), { flagged: true }, { flagged: false }],
    ["archived", () => archive("ada", ["msg_1"], true), { add_labels: ["archived"] }, { remove_labels: ["archived"] }],
    [
      "back from the archive",
      () => archive("ada", ["msg_1"], false),
      { remove_labels: ["archived"] },
      { add_labels: ["archived"] },
    ],
  ])("can be undone for what it changed: %s", async (_, change, there, back) => {
    const changing = change()
    const request = await done(["msg_7", "msg_8"])
    expect([request.method, request.url, request.body]).toEqual([
      "PATCH",
      at,
      { ids: ["msg_1"], threads: [], ...there },
    ])
    await changing
    const { undo, leave } = await toasts()
    await undo()
    expect((await done(["msg_7"])).body).toEqual({ ids: ["msg_7", "msg_8"], threads: [], ...back })
    await leave()
  })

  it("is made in requests of 200, each repeated until nothing is left, and offers no way back if it fails", async () => {
    const changing = mark("ada", ids(401), true)
    expect((await done(["a"], true)).body).toMatchObject({ ids: { length: 100 }, threads: { length: 100 } })
    expect((await done(["b"])).body.ids[0]).toBe("msg_0")
    expect((await done(["c"])).body.ids[0]).toBe("msg_200")
    const last = await calls.next()
    expect(last.body).toMatchObject({ ids: ["msg_400"], threads: [] })
    last.answer(422, { status: 422, detail: "no" })
    await changing
    const { text, leave } = await toasts()
    expect(text).toMatch(/not/)
    await leave()
  })

  it("deletes after 8 seconds, and hides the messages until they are gone", async () => {
    remove("ada", ["msg_1", "thr_2"])
    expect([...leaving.value]).toEqual(["msg_1", "thr_2"])
    await after(7_999)
    expect(calls.waiting()).toBe(0)
    await after(1)
    const request = await calls.next()
    expect([request.method, request.url, request.body]).toEqual([
      "POST",
      `${at}/remove`,
      { ids: ["msg_1"], threads: ["thr_2"] },
    ])
    expect([...leaving.value].length).toBe(2)
    request.answer(200, { changed: [], more: false })
    await eventually(() => expect([...leaving.value]).toEqual([]))
  })

  it("shows messages again whose deletion was undone or failed", async () => {
    // At most three notifications are shown, with those of other tests.
    const earlier = await drawn(Toasts, {})
    for (const toast of earlier.top.all({ class: "toast" })) await earlier.fire(toast.all("button").at(-1)!, "click")
    await earlier.leave()
    remove("ada", ["msg_1"])
    remove("ada", ["msg_2"])
    const { undo, leave } = await toasts()
    await undo()
    expect([...leaving.value]).toEqual(["msg_1"])
    await after(8_000)
    ;(await calls.next()).answer(422, { status: 422, detail: "no" })
    await eventually(() => expect([...leaving.value]).toEqual([]))
    await leave()
    const shown = await drawn(Toasts, {})
    const texts = shown.top.all({ class: "toast" }).map(({ textContent }) => textContent)
    expect(texts.filter((text) => text.includes("could not be saved")).length).toBe(1)
    await shown.leave()
    await after(60_000)
    expect(calls.waiting()).toBe(0)
  })
})
