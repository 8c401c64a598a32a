/** The initial content of the composer, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Entries, heldCalls, problem, source } from "./Modules.ts"

const { begin } = await source("compose/initial.ts")
const { unsavedName } = await source("compose/draft.ts")
const { deleteAllUnsaved, storeUnsavedFor, unsavedInput } = await source("client/Unsaved.ts")

const own = "ada@mail.example"
let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  storeUnsavedFor("account")
  vi.stubGlobal(
    "FileReader",
    class extends EventTarget {
      result = ""
      readAsDataURL(content: Blob) {
        void content.text().then((text) => {
          this.result = `data:x;base64,${btoa(text)}`
          this.dispatchEvent(new Event("load"))
        })
      }
    },
  )
})
afterEach(() => {
  deleteAllUnsaved()
  vi.unstubAllGlobals()
})

const started = (query: string) => begin("ada", own, new URLSearchParams(query)) as Promise<any>
/** Answers the next call, and returns its address. */
const answered = async (status: number, body?: unknown, headers?: Record<string, string>) => {
  const call = await calls.next()
  call.answer(status, body, headers)
  return call.url
}
const person = (address: string, name: string | null = null) => ({ address, name })
const message = {
  id: "m1",
  direction: "inbound",
  from: person("bob@example.org", "Bob"),
  to: [person(own), person("eve@example.org")],
  cc: [person("carl@example.org")],
  reply_to: [],
  subject: "Plans",
  text: "whole",
  text_reply: "hello",
  received_at: "2026-11-25T12:00:00.000Z",
  attachments: [] as ReadonlyArray<object>,
}

describe("A composer begins", () => {
  it("empty, or with the recipient of its address", async () => {
    const empty = { kind: "new", mail: { to: [], subject: "", text: "" }, leftOut: [] }
    expect(await started("")).toEqual(empty)
    expect(await started("to=bob@example.org")).toEqual({ ...empty, mail: { ...empty.mail, to: ["bob@example.org"] } })
    expect(calls.all).toEqual([])
  })

  it.each([
    ["reply=m1", []],
    ["reply=m1&all", ["eve@example.org", "carl@example.org"]],
  ])("as a reply to the author, and to all only if that was chosen: %s", async (query, cc) => {
    const reply = started(query)
    expect(await answered(200, message)).toBe("/api/identities/ada/messages/m1")
    const { kind, mail } = await reply
    expect([kind, mail.to, mail.cc, mail.subject]).toEqual(["reply", ["bob@example.org"], cc, "Re: Plans"])
    expect(mail.reply_to_message).toBe("m1")
    expect(mail.text).toMatch(/^\n\n.*Nov 25, 2026.*Bob.*\n> hello\n$/)
  })

  it.each([
    [person("bob@example.org"), "bob@example.org"],
    [null, "unknown"],
  ])("as a reply that names the author by name or address: %j", async (from, name) => {
    const reply = started("reply=m1")
    await answered(200, { ...message, from })
    expect((await reply).mail.text.toLowerCase()).toContain(name.toLowerCase())
  })

  it("as a forwarded message with its attachments, and names those that are too large or cannot be read", async () => {
    const file = (index: number, size: number, filename: string | null = `f${index}`) => ({
      index,
      size,
      filename,
      content_type: "text/plain",
    })
    const attachments = [
      file(0, 4_000_000),
      file(1, 4_000_000),
      file(2, 3_000_000),
      file(3, 1, "gone"),
      file(4, 0, null),
    ]
    const forward = started("forward=m1")
    await answered(200, { ...message, attachments })
    const at = "/api/identities/ada/messages/m1/attachments/"
    for (const [index, status] of [
      [0, 200],
      [2, 200],
      [4, 200],
    ] as const)
      expect(await answered(status, "x")).toBe(`${at}${index}`)
    const { kind, mail, leftOut } = await forward
    expect([kind, mail.to, mail.subject, leftOut]).toEqual(["forward", [], "Fwd: Plans", ["f1", "gone"]])
    expect(mail.attachments.map(({ filename }: any) => filename).slice(0, 2)).toEqual(["f0", "f2"])
    expect(mail.attachments).toHaveLength(3)
    expect(mail.attachments[0]).toMatchObject({ content_type: "text/plain", content_base64: btoa('"x"') })
    for (const line of ["From: Bob <bob@example.org>", "Subject: Plans", `To: ${own}, eve@example.org`, "whole"])
      expect(mail.text).toContain(line)
    expect(mail.text).toMatch(/Date: .*Nov 25, 2026/)
  })

  it("as a forwarded message with at most 50 attachments, and names the others", async () => {
    vi.stubGlobal("fetch", (url: string) =>
      Promise.resolve(
        url.endsWith("/m1")
          ? Response.json({
              ...message,
              from: null,
              attachments: Array.from({ length: 52 }, (_, index) => {
                const filename = `f${index}`
                return { index, filename, size: 1, content_type: "text/plain" }
              }),
            })
          : new Response("x", { status: url.endsWith("/3") ? 404 : 200 }),
      ),
    )
    const { mail, leftOut } = await started("forward=m1")
    expect([mail.attachments.length, leftOut]).toEqual([50, ["f3", "f51"]])
    expect(mail.text).not.toContain("From:")
  })

  it("with a stored draft and its entity tag", async () => {
    const draft = started("draft=d1")
    const stored = { id: "d1", created_at: "c", updated_at: "u", to: ["bob@example.org"], subject: "s", text: "t" }
    expect(await answered(200, stored, { etag: '"1"' })).toBe("/api/identities/ada/drafts/d1")
    expect(await draft).toEqual({
      kind: "draft",
      mail: { to: ["bob@example.org"], subject: "s", text: "t" },
      draft: { id: "d1", tag: '"1"', at: "u" },
      leftOut: [],
    })
  })

  it.each([
    [{}, ["bob@example.org"], [], "Re: Plans"],
    [{ to: [] }, ["bob@example.org"], [], "Re: Plans"],
    [{ reply_all: true }, ["bob@example.org"], ["eve@example.org", "carl@example.org"], "Re: Plans"],
    [{ reply_all: true, cc: ["x@example.org"], subject: "s" }, ["bob@example.org"], ["x@example.org"], "s"],
  ])("with the recipients of the message that a draft replies to: %j", async (more, to, cc, subject) => {
    const draft = started("draft=d1")
    await answered(200, { id: "d1", updated_at: "u", reply_to_message: "m1", ...more })
    expect(await answered(200, message)).toBe("/api/identities/ada/messages/m1")
    expect((await draft).mail).toMatchObject({ to, cc, subject })
  })

  it("with a draft whose recipients are its own, without reading the message", async () => {
    const draft = started("draft=d1")
    await answered(200, { id: "d1", updated_at: "u", reply_to_message: "m1", to: ["x@example.org"] })
    expect((await draft).mail.to).toEqual(["x@example.org"])
  })
})

describe("A composer that was left begins", () => {
  const mail = { to: ["bob@example.org"], subject: "s", text: "typed", attachments: [] }
  const left = (query: string, value: object) =>
    unsavedInput(unsavedName("ada", new URLSearchParams(query))).write(value)

  it.each([
    ["", "new"],
    ["reply=m1", "reply"],
    ["forward=m1", "forward"],
  ])("with what was typed, without the service: %s", async (query, kind) => {
    left(query, { mail, missing: ["a.pdf"] })
    expect(await started(query)).toEqual({ kind, mail, leftOut: [], missing: ["a.pdf"] })
    expect(calls.all).toEqual([])
  })

  const draft = { id: "d1", tag: '"1"', at: "u" }
  const file = (filename: string) => ({ filename, content_type: "text/plain", content_base64: "eA==" })

  it("with what was typed into a draft, and the attachments that the draft still has", async () => {
    left("draft=d1", { mail: { ...mail, attachments: [file("a")] }, draft, missing: ["a", "b"] })
    const beginning = started("draft=d1")
    await answered(
      200,
      { id: "d1", updated_at: "u2", ...mail, text: "stored", attachments: [file("a")] },
      { etag: '"2"' },
    )
    expect(await beginning).toEqual({
      kind: "draft",
      mail: { ...mail, attachments: [file("a")] },
      // The tag of the version that was edited, so that a newer one is not overwritten.
      draft,
      leftOut: [],
      missing: ["b"],
    })
  })

  it("with the tag of the stored draft if its own is not known", async () => {
    left("draft=d1", { mail, draft: { id: "d1", at: "u" }, missing: [] })
    const beginning = started("draft=d1")
    await answered(200, { id: "d1", updated_at: "u2", ...mail, text: "stored" }, { etag: '"2"' })
    expect(await beginning).toMatchObject({ mail: { text: "typed" }, draft: { tag: '"2"' } })
  })

  it("with the stored draft if the last write reached the service", async () => {
    left("draft=d1", { mail, draft, missing: [] })
    const beginning = started("draft=d1")
    const stored = { id: "d1", updated_at: "u2", ...mail, cc: [] }
    await answered(200, stored, { etag: '"2"' })
    await answered(200, stored, { etag: '"2"' })
    expect(await beginning).toMatchObject({ kind: "draft", draft: { id: "d1", tag: '"2"', at: "u2" } })
    expect((await beginning).missing).toBeUndefined()
  })

  it.each([
    [404, "new", undefined],
    [503, "draft", draft],
  ])(
    "as a new message if the draft is gone, and with the draft if it cannot be read: %s",
    async (status, kind, kept) => {
      left("draft=d1", { mail, draft, missing: [] })
      const beginning = started("draft=d1")
      await answered(status, problem(status))
      const { draft: found, ...rest } = await beginning
      expect([rest, found]).toEqual([{ kind, mail, leftOut: [], missing: [] }, kept])
    },
  )
})
