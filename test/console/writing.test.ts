/** Drafts that are saved while a person types, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, Entries, heldCalls, leaveAll, mounted, source } from "./Modules.ts"

const { closed, keepDraft, unsavedName } = await source("compose/draft.ts")
const { Kept, Overtaken, Upload } = await source("compose/DraftState.tsx")
const { useDelayed } = await source("compose/delayed.ts")
const { client } = await source("client/Queries.ts")
const { storeUnsavedFor, unsavedInput, unsavedWith } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  vi.stubGlobal("addEventListener", () => {})
  vi.stubGlobal("removeEventListener", () => {})
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] })
  storeUnsavedFor("ada")
})
afterEach(async () => {
  await leaveAll()
  storeUnsavedFor(undefined)
  client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
const after = (millis: number) => vi.advanceTimersByTimeAsync(millis)
const settled = () => after(0)

describe("A draft", () => {
  const mail = (text: string, attachments: ReadonlyArray<object> = []) => ({ to: [], subject: "", text, attachments })
  const drafts = "/api/identities/ada/drafts"
  const opened = (start?: object) => {
    const made = vi.fn()
    return { made, draft: keepDraft("ada", start, made, unsavedInput("compose:ada:")) }
  }
  const stored = () =>
    unsavedWith("compose").map(([, { mail }]: readonly [string, { mail: { text: string } }]) => mail.text)
  /** Answers the next call, and returns it. */
  const answered = async (status: number, body?: object, tag?: string) => {
    const request = await calls.next()
    request.answer(status, body, tag === undefined ? {} : { etag: tag })
    await settled()
    return request
  }
  const saved = { id: "d1", tag: '"1"', at: "", mail: mail("a") }

  it("is created with the first letter, and each later write replaces the version before it", async () => {
    const list = ["GET /api/identities/:handle/drafts", { params: { handle: "ada" } }]
    client.setQueryData(list, {})
    const { draft, made } = opened()
    draft.change(mail("a"))
    await settled()
    const first = await answered(201, { id: "d1" }, '"1"')
    expect([first.method, first.url, first.body.text, made.mock.calls]).toEqual(["POST", drafts, "a", [["d1"]]])
    expect([draft.state.value.is, stored()]).toEqual(["saved", []])
    // The list of drafts is read again.
    expect(client.getQueryState(list)?.isInvalidated).toBe(true)
    for (const [text, before, next] of [
      ["ab", '"1"', '"2"'],
      ["abc", '"2"', '"3"'],
    ] as const) {
      draft.change(mail(text))
      expect([draft.state.value.is, stored()]).toEqual(["changed", [text]])
      await after(1_199)
      expect(calls.waiting()).toBe(0)
      await after(1)
      const write = await answered(200, {}, next)
      expect([write.method, write.url, write.headers["if-match"]]).toEqual(["PUT", `${drafts}/d1`, before])
    }
    draft.change(mail("abc"))
    await after(60_000)
    expect([calls.waiting(), draft.isKept()]).toEqual([0, true])
  })

  it("is created once if the response is lost, and then gets what was typed meanwhile", async () => {
    const { draft } = opened()
    draft.change(mail("a"))
    await settled()
    const first = await calls.next()
    draft.change(mail("ab"))
    first.lose()
    await settled()
    expect(draft.state.value.is).toBe("failed")
    await after(2_000)
    const again = await answered(201, { id: "d1" }, '"1"')
    expect([again.body, again.headers["idempotency-key"]]).toEqual([first.body, first.headers["idempotency-key"]])
    const write = await answered(200, {}, '"2"')
    expect([write.method, write.body.text, draft.state.value.is]).toEqual(["PUT", "ab", "saved"])
  })

  it("is tried again after 2, 5 and 15 seconds, and no more after its composer was closed", async () => {
    const { draft } = opened(saved)
    draft.change(mail("ab"))
    await after(1_200)
    for (const wait of [2_000, 5_000, 15_000, 15_000]) {
      ;(await calls.next()).lose()
      await after(wait - 1)
      expect(calls.waiting()).toBe(0)
      await after(1)
    }
    const underWay = await calls.next()
    draft.leave()
    underWay.lose()
    await settled()
    // Closing a composer saves its draft immediately, and the next composer waits for that.
    const last = await calls.next()
    let isNext = false
    const next = closed().then(() => (isNext = true))
    await after(2_999)
    expect(isNext).toBe(false)
    last.lose()
    await next
    await after(60_000)
    expect([calls.waiting(), stored()]).toEqual([0, ["ab"]])
  })

  it("is not tried again if it is rejected, and a second attempt to create it is a new one", async () => {
    const { draft } = opened()
    draft.change(mail("a"))
    await settled()
    const first = await answered(422, { status: 422, detail: "no" })
    expect(draft.state.value).toMatchObject({ is: "failed", failure: { problem: { status: 422 } } })
    await after(60_000)
    expect(calls.waiting()).toBe(0)
    draft.change(mail("ab"))
    await settled()
    const second = await answered(201, { id: "d1" }, '"1"')
    expect(second.headers["idempotency-key"]).not.toBe(first.headers["idempotency-key"])
  })

  it.each([404, 412])(
    "that another editor changed, sent or deleted (%d) is only overwritten on demand",
    async (status) => {
      const { draft } = opened(saved)
      draft.change(mail("ab"))
      await after(1_200)
      await answered(status, { status, detail: "no" })
      expect([draft.state.value.is, stored()]).toEqual(["overtaken", ["ab"]])
      draft.change(mail("abc"))
      await after(60_000)
      expect([draft.state.value.is, calls.waiting(), stored()]).toEqual(["overtaken", 0, ["abc"]])
      expect(await draft.send(mail("abc"), "key")).toBeUndefined()
      const done = draft.overrule()
      if (status === 404) {
        await answered(404, { status, detail: "no" })
        const made = await answered(201, { id: "d2" }, '"1"')
        expect([made.method, made.url]).toEqual(["POST", drafts])
      } else {
        await answered(200, { id: "d1" }, '"9"')
        const write = await answered(200, {}, '"10"')
        expect([write.method, write.headers["if-match"], write.body.text]).toEqual(["PUT", '"9"', "abc"])
      }
      await done
      expect([draft.state.value.is, stored()]).toEqual(["saved", []])
    },
  )

  it("is not created anew if the version of another editor cannot be read", async () => {
    const { draft } = opened(saved)
    draft.change(mail("ab"))
    await after(1_200)
    await answered(412, { status: 412, detail: "no" })
    const failed = draft.overrule().catch((cause: Error) => cause.message)
    await answered(403, { status: 403, detail: "not yours" })
    expect([await failed, calls.waiting(), stored()]).toEqual(["not yours", 0, ["ab"]])
  })

  it("is stored under its id once it was created", async () => {
    const { draft } = opened()
    draft.change(mail("a"))
    await settled()
    await answered(201, { id: "d1" }, '"1"')
    draft.change(mail("ab"))
    expect(unsavedWith("compose").map(([name]: readonly [string]) => name)).toEqual([":ada:draft=d1"])
  })

  it.each(["draft=d1", "reply=m1", "forward=m1", "to=grace%40example.org", ""])(
    "is stored under what its address names: %s",
    (query) =>
      expect(unsavedName("ada", new URLSearchParams(`x=1&${query}`))).toBe(`compose:ada:${decodeURIComponent(query)}`),
  )

  it("is saved before it is sent by its id, and keeps nothing afterwards", async () => {
    const { draft } = opened(saved)
    const done = draft.send(mail("ab"), "key")
    await answered(200, {}, '"2"')
    const sent = await answered(202, { id: "m1" })
    expect([sent.method, sent.url, sent.headers["idempotency-key"]]).toEqual(["POST", `${drafts}/d1/send`, "key"])
    expect(await done).toEqual({ id: "m1" })
    draft.change(mail("abc"))
    await after(60_000)
    expect([calls.waiting(), stored(), draft.isKept()]).toEqual([0, [], true])
  })

  it("is sent as a message if there are too many drafts, and not if saving fails otherwise", async () => {
    const { draft } = opened()
    draft.change(mail("a"))
    const done = draft.send(mail("a"), "key")
    await answered(409, { status: 409, detail: "too many" })
    const sent = await answered(202, { id: "m1" })
    expect([sent.url, sent.headers["idempotency-key"]]).toEqual(["/api/identities/ada/messages/send", "key"])
    expect(await done).toEqual({ id: "m1" })
    expect(stored()).toEqual([])
    // A draft that exists is never sent in another version than the saved one.
    for (const [start, status] of [
      [undefined, 422],
      [saved, 409],
    ] as const) {
      const failed = opened(start)
        .draft.send(mail("ab"), "key")
        .catch((cause: Error) => cause.message)
      await answered(status, { status, detail: "no" })
      expect([await failed, calls.waiting()]).toEqual(["no", 0])
    }
  })

  it("that is large is saved later, and its attachments are stored in the browser only if they are small", async () => {
    const { draft } = opened(saved)
    const attachment = (size: number) => ({ filename: "f", content_base64: "a".repeat(size) })
    draft.change(mail("ab", [attachment(190_000)]))
    await after(1_200)
    const small = await answered(200, {}, '"2"')
    expect(small.method).toBe("PUT")
    draft.change(mail("abc", [attachment(1_000_001)]))
    const [[, entry]] = unsavedWith("compose")
    expect([entry.mail.attachments, entry.missing, entry.draft.tag]).toEqual([[], ["f"], '"2"'])
    await after(7_999)
    expect(draft.state.value.is).toBe("changed")
    await after(1)
    expect(draft.state.value.is).not.toBe("changed")
    draft.end()
  })

  it("is deleted after the write in flight", async () => {
    const { draft } = opened(saved)
    draft.change(mail("ab"))
    await after(1_200)
    const write = await calls.next()
    const done = draft.remove()
    await settled()
    expect(calls.waiting()).toBe(0)
    write.answer(200, {}, { etag: '"2"' })
    const gone = await answered(204)
    expect([gone.method, gone.url]).toEqual(["DELETE", `${drafts}/d1`])
    await done
    expect(stored()).toEqual([])
  })
})

describe("A message that is sent after 10 seconds", () => {
  it("counts down, can be cancelled, and is sent once", async () => {
    const run = vi.fn()
    const hook = await mounted((): any => useDelayed(run), {})
    await hook.act(() => hook.now.start())
    expect(hook.now.seconds).toBe(10)
    await hook.act(() => after(3_000))
    expect(hook.now.seconds).toBe(7)
    await hook.act(() => hook.now.start())
    await hook.act(() => after(6_750))
    expect([hook.now.seconds, run.mock.calls.length]).toEqual([1, 0])
    await hook.act(() => hook.now.cancel())
    await hook.act(() => after(60_000))
    expect([hook.now.seconds, run.mock.calls.length]).toEqual([undefined, 0])
    await hook.act(() => hook.now.start())
    await hook.act(() => after(10_000))
    await hook.act(() => after(60_000))
    expect([hook.now.seconds, run.mock.calls.length]).toEqual([undefined, 1])
    await hook.act(() => hook.now.start())
    await hook.leave()
    await after(60_000)
    expect(run.mock.calls.length).toBe(1)
  })
})

it.each([
  [{ is: "new" }, "", []],
  [{ is: "changed" }, "Saving draft …", []],
  [{ is: "saving" }, "Saving draft …", []],
  [{ is: "saved", at: "2026-11-20T12:00:00Z" }, /^Draft saved /, []],
  [{ is: "failed", failure: new Error("no") }, /in this browser/, ["Try again"]],
  [{ is: "overtaken" }, "", ["Keep my version", "Show the other version"]],
] as const)("the state %j of a draft is shown with what a person can do", async (state, text, buttons) => {
  const keeper = { state: { value: state }, save: () => {}, overrule: () => Promise.resolve() }
  const kept = await drawn(Kept, { of: keeper })
  const status = kept.top.textContent
  if (typeof text === "string") expect(status).toBe(text)
  else expect(status).toMatch(text)
  const offered = kept.top.all("button").map(({ textContent }) => textContent)
  await kept.leave()
  const overtaken = await drawn(Overtaken, { of: keeper, onReload: () => {} })
  offered.push(...overtaken.top.all("button").map(({ textContent }) => textContent))
  await overtaken.leave()
  expect(offered).toEqual(buttons)
})

it("The version of a draft that replaces the other one is chosen by a person, who sees why that fails", async () => {
  const overrule = vi.fn(() => Promise.reject(new Error("not now")))
  const onReload = vi.fn()
  const { press, top } = await drawn(Overtaken, { of: { state: { value: { is: "overtaken" } }, overrule }, onReload })
  await press("Keep my version")
  await after(1)
  expect([overrule.mock.calls.length, onReload.mock.calls.length]).toEqual([1, 0])
  expect(top.all({ role: "alert" }).length).toBe(1)
  await press("Show the other version")
  expect([overrule.mock.calls.length, onReload.mock.calls.length]).toEqual([1, 1])
})

it("A draft that was not saved is saved again by a button", async () => {
  const save = vi.fn()
  const { press } = await drawn(Kept, { of: { state: { value: { is: "failed", failure: new Error("no") } }, save } })
  await press("Try again")
  expect(save).toHaveBeenCalledTimes(1)
})

it.each([
  [undefined, false],
  [0, true],
  [0.5, true],
  // The service may have received it.
  [1, false],
])("An upload of which the share %s was sent can be cancelled: %s", async (share, can) => {
  const cancel = vi.fn(() => ["kept"])
  const onCancel = vi.fn()
  const { top, press } = await drawn(Upload, { of: { sent: { value: share }, cancel }, onCancel })
  expect(top.all("progress").map(({ attributes }) => attributes["value"])).toEqual(can ? [String(share)] : [])
  if (!can) return expect(top.all("button")).toEqual([])
  await press("Cancel upload")
  expect(onCancel.mock.calls).toEqual([[["kept"]]])
})
