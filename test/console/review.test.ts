/** The review of a message before it is sent, without a browser: what it shows, and what a decision says. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, leavePage, problem, source } from "./Modules.ts"

const { Review } = await source("mail/ApprovalPage.tsx")
const { Approvals } = await source("mail/ApprovalsPage.tsx")
const { incomplete } = await source("approvals/Completeness.ts")
const { client } = await source("client/Queries.ts")
const { Toasts } = await source("ui/Toast.tsx")

const person = (name: string) => ({ name: null, address: `${name}@example.org` })
const pending = {
  id: "msg_1",
  content_sha256: "one",
  subject: "Invoice",
  from: { name: "Ada", address: "ada@agents.example" },
  to: [person("to"), person("second")],
  cc: [person("cc")],
  bcc: [person("bcc")],
  reply_to: [person("reply")],
  requested_at: "2026-11-20T08:00:00Z",
  expires_at: "2026-11-27T08:00:00Z",
  differences: { only_in_html: ["pay 9"], only_in_text: ["pay 1"] },
  html: "<p>pay 9</p>",
  text: "pay 1",
  headers: [{ name: "X-Own", value: "1" }],
  attachments: [],
}
const at = "/api/identities/ada/approvals/msg_1"
const key = ["GET /api/identities/:handle/approvals/:id", { params: { handle: "ada", id: "msg_1" } }]

let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  entries = await browserAt("/identities/ada/mail/approvals/msg_1")
})
afterEach(leavePage)

const opened = (more: object = {}) => {
  client.setQueryData(key, { ...pending, ...more })
  return drawn(Review, { handle: "ada", id: "msg_1" })
}
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("The review of a message", () => {
  it("shows every recipient, who gets a reply, and which differences are in which part", async () => {
    const { facts, top, press } = await opened()
    expect(facts()).toMatchObject({
      From: "Ada <ada@agents.example>",
      To: "to@example.org, second@example.org",
      Cc: "cc@example.org",
      Bcc: "bcc@example.org",
      "Reply to": "reply@example.org",
    })
    const [differences] = top.all({ class: "differences" })
    expect(differences!.textContent).toBe("Only in the HTMLpay 9Only in the plain textpay 1")
    expect(top.all("iframe")[0]!.attributes["src"]).toBe("/console/mail/ada/msg_1/body")
    await press("Plain text")
    expect(top.all("pre").map(({ textContent }) => textContent)).toEqual(["pay 1"])
    await press("Headers")
    expect(facts()).toMatchObject({ "X-Own": "1" })
  })

  it("does not ask about what a message does not have", async () => {
    const nothing = { cc: [], bcc: [], reply_to: [], from: null, differences: null, html: null, subject: "" }
    const { facts, top, press } = await opened(nothing)
    expect([top.all("h2")[0]!.textContent, top.all("article")[0]!.attributes["aria-label"]]).toEqual(
      Array(2).fill("(no subject)"),
    )
    expect(Object.keys(facts())).toEqual(["To", "Requested", "Expires"])
    expect([top.all("iframe").length, top.all("pre")[0]!.textContent]).toEqual([0, "pay 1"])
    expect(top.textContent).not.toContain("As recipients see it")
    await press("Reject")
    expect(top.all("h2").at(-1)!.textContent).toBe("Reject “(no subject)”?")
  })

  it("approves the content that it shows, and then opens the message", async () => {
    const lists = ["messages", "threads"].map((part) => [
      `GET /api/identities/:handle/${part}`,
      { params: { handle: "ada" } },
    ])
    for (const list of lists) client.setQueryData(list, {})
    const { press } = await opened()
    await press("Approve and send")
    const request = await answered(200, {})
    expect([request.method, request.url, request.body]).toEqual(["POST", `${at}/approve`, { content_sha256: "one" }])
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/mail/msg_1"]))
    expect(lists.map((list) => client.getQueryState(list)?.isInvalidated)).toEqual([true, true])
    const toasts = await drawn(Toasts, {})
    expect(toasts.top.textContent).toContain("“Invoice” approved")
  })

  it("shows what changed after a rejected decision, and hides remote images of the new content again", async () => {
    const html = '<img src="https://images.example/a.png">'
    const { press, top, button } = await opened({ html })
    expect(button("Approve and send")!.attributes["disabled"]).toBe("true")
    await press("Show images")
    expect(button("Approve and send")!.attributes["disabled"]).toBeUndefined()
    expect(top.all("iframe")[0]!.attributes["src"]).toBe("/console/mail/ada/msg_1/body?images=1")
    await press("Approve and send")
    await answered(409, problem(409, { detail: "too late" }))
    const again = await answered(200, { ...pending, html, content_sha256: "two", subject: "Other" })
    expect([again.method, again.url]).toEqual(["GET", at])
    await eventually(() => expect(top.all("h2")[0]!.textContent).toBe("Other"))
    expect(button("Approve and send")!.attributes["disabled"]).toBe("true")
    expect(entries).toEqual([])
  })

  it("says why the same content could not be approved, and offers to read a message that could not be read", async () => {
    const { press, top, leave } = await opened()
    await press("Approve and send")
    await answered(503, problem(503, { detail: "not now" }))
    await answered(200, pending)
    await eventually(() => expect(top.textContent).toContain("not now"))
    await leave()
    client.clear()
    const other = await drawn(Review, { handle: "ada", id: "msg_1" })
    await answered(403, problem(403, { detail: "not yours" }))
    await eventually(() => expect(other.top.textContent).toContain("not yours"))
    await other.press("Try again")
    expect((await calls.next()).url).toBe(at)
  })

  it.each([
    ["  ", {}],
    [" Not yet ", { reason: " Not yet " }],
  ])("rejects the content that it shows with the reason %j", async (reason, more) => {
    const { press, enter, submit } = await opened()
    await press("Reject")
    await enter("Reason", reason)
    expect(calls.waiting()).toBe(0)
    await submit()
    const request = await answered(200, {})
    expect([request.url, request.body]).toEqual([`${at}/refuse`, { content_sha256: "one", ...more }])
    const toasts = await drawn(Toasts, {})
    await eventually(() => expect(toasts.top.textContent).toContain("“Invoice” rejected"))
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/mail/msg_1"]))
  })

  it("previews images and text, says if a preview is cut or missing, and offers every file whole", async () => {
    const file = (index: number, content_type: string, size = 1, filename: string | null = `file ${index}`) => ({
      index,
      content_type,
      size,
      filename,
    })
    const attachments = [
      file(0, "image/png", 10 * 1024 * 1024),
      file(1, "image/png", 10 * 1024 * 1024 + 1),
      file(2, "image/svg+xml"),
      file(3, "Text/CSV", 200_000),
      file(4, "application/json", 200_001, null),
      file(7, "application/pdf"),
    ]
    const { top } = await opened({ attachments })
    const path = (index: number) => `/api/identities/ada/messages/msg_1/attachments/${index}`
    for (const _ of [1, 2, 3]) {
      const { url, answer } = await calls.next()
      await act(async () => answer(200, `content of ${url}`))
    }
    const rows = () => top.all({ class: "box rows previews" })[0]!.childNodes
    await eventually(() => expect(top.all({ class: "preview" }).length).toBe(4))
    expect(
      rows().map((row) => row.all("a").map(({ attributes }) => [attributes["href"], attributes["download"]])),
    ).toEqual(attachments.map(({ index, filename }) => [[path(index), filename ?? "Unnamed file"]]))
    expect(top.all("img").map(({ attributes }) => [attributes["src"], attributes["alt"]])).toEqual([
      [path(0), "file 0"],
    ])
    const texts = rows().map((row) => row.all({ class: "preview" })[0]?.textContent)
    expect(texts).toEqual(["", undefined, ...[2, 3, 4].map((index) => `"content of ${path(index)}"`), undefined])
    const says = (part: string) => rows().map(({ textContent }) => textContent.includes(part))
    expect(says("only the beginning")).toEqual([false, false, false, false, true, false])
    expect(says("No preview")).toEqual([false, true, false, false, false, true])
  })

  it("names what it cannot show, and then offers the original", async () => {
    const originals = async (html: string) => {
      const { top, leave, button } = await opened({ html })
      expect(button("Approve and send")!.attributes["disabled"]).toBe("true")
      const links = top.all({ download: "msg_1.eml" }).map(({ attributes }) => attributes["href"])
      const text = top.textContent
      await leave()
      return [links, text] as const
    }
    const [none, remote] = await originals('<img src="https://images.example/a.png">')
    expect([none, remote.includes("Show the images before you approve")]).toEqual([[], true])
    const [links, plain] = await originals('<img src="http://images.example/a.png">')
    expect(links).toEqual(["/api/identities/ada/messages/msg_1/raw"])
    expect(plain).toContain("without encryption")
    expect((await originals("x".repeat(1_000_001)))[1]).toContain("too long")
  })

  it("says that the message needs no decision any more, or does not exist", async () => {
    const { top } = await drawn(Review, { handle: "ada", id: "msg_1" })
    await answered(409, problem(409))
    await eventually(() => expect(top.textContent).toContain("no longer needs approval"))
    expect(top.all("a")[0]!.attributes["href"]).toBe("/console/identities/ada/mail/msg_1")
    await leaveAll()
    client.clear()
    const other = await drawn(Review, { handle: "ada", id: "msg_1" })
    await answered(404, problem(404))
    await eventually(() => expect(other.top.textContent).toBe("Message not found"))
  })
})

it("A message in the list of approvals shows all its recipients, also hidden ones, and leads to its own review", async () => {
  const one = (id: string, more: object) => ({ ...pending, id, snippet: id, attachments: [], ...more })
  const { top, button } = await drawn(Approvals, { handle: "ada" })
  const files = [{ filename: "a.pdf" }, { filename: null }]
  const approvals = [one("msg_1", { attachments: files }), one("msg_2", { subject: "", cc: [], bcc: [] })]
  await answered(200, { approvals, next_cursor: "more" })
  await eventually(() => expect(top.all("article").length).toBe(2))
  expect([
    button("Show more") !== undefined,
    top.textContent.includes("Nothing is sent before you approve it"),
  ]).toEqual([true, true])
  const [first, second] = top.all("article")
  expect(first!.all("dd")[0]!.textContent).toBe("to@example.org, second@example.org, cc@example.org, bcc@example.org")
  expect(first!.textContent).toContain("2 attachments: a.pdf, Unnamed file")
  const times = first!.all("time").map(({ attributes }) => attributes["dateTime"])
  expect(times).toEqual([pending.requested_at, pending.expires_at])
  expect(second!.all("h2")[0]!.textContent).toBe("(no subject)")
  const links = [first, second].map((article) => article!.all("a").map(({ attributes }) => attributes["href"]))
  const review = (id: string) => `/console/identities/ada/mail/approvals/${id}`
  expect(links).toEqual(["msg_1", "msg_2"].map((id) => [review(id), review(id)]))
})

it.each([
  [undefined, { html: null }],
  [undefined, { html: "<p>https://site.example</p>" }],
  [undefined, { html: "x".repeat(1_000_000) }],
  ["too_long", { html: "x".repeat(1_000_001) }],
  ["images", { html: "<img src=https://images.example/a.png>" }],
  ["images", { html: "<table background = 'https://images.example/a.png'>" }],
  ["images", { html: '<p style="background: URL( https://images.example/a.png)">' }],
  // A mail program reads these as the address of an image, too.
  ["images", { html: "<p style='background: url(&quot;https://images.example/a.png&quot;)'>" }],
  ["images", { html: '<img src="&#104;ttps&colon;//images.example/a.png">' }],
  ["images", { html: '<img src="&#x48;t\ntps&#58;//images.example/a.png">' }],
  ["http_images", { html: '<img src="h&Tab;ttp://images.example/a.png">' }],
  ["http_images", { html: '<img src="http://images.example/a.png"><img src="https://images.example/a.png">' }],
  ["images", { html: '<img src="https://images.example/a.png">'.repeat(200) }],
  // The frame leaves out further images, and images with a long address, also after a person asked for them.
  ["too_long", { html: '<img src="https://images.example/a.png">'.repeat(201) }],
  ["images", { html: `<img alt="a" src="https://images.example/${"ü".repeat(600)}">` }],
  ["too_long", { html: `<img alt="a" src="https://images.example/${"ü".repeat(700)}">` }],
  ["too_long", { html: `<img alt=">" src='https://images.example/${"a b".repeat(1_000)}'>` }],
  ["too_long", { html: `<img/src=https://images.example/${"&xi;".repeat(700)}>` }],
  ["images", { html: `<img src="https://images.example/"><img src="data:image/png;base64,${"A".repeat(5_000)}">` }],
  // A link with a long address becomes text.
  [undefined, { html: `<a href="https://site.example/${"a".repeat(3_900)}">x</a>` }],
  ["too_long", { html: `<a href="https://site.example/${"a".repeat(4_000)}">x</a>` }],
  [undefined, { html: '<a href="https://site.example/">x</a>'.repeat(1_000) }],
  ["too_long", { html: '<a href="https://site.example/">x</a>'.repeat(1_001) }],
  // Each reference repeats the largest attachment, encoded as base64.
  [undefined, { html: '<img src="cid:a">', attachments: [{ size: 1 }, { size: 11_900_000 }] }],
  ["too_long", { html: '<img src="cid:a">', attachments: [{ size: 12_000_000 }, { size: 1 }] }],
  ["too_long", { html: '<img src="CID:a"><img src="cid:a">', attachments: [{ size: 6_000_000 }] }],
] as const)("The review finds the message incomplete: %s", (reason, message) => {
  expect(incomplete({ attachments: [], ...message }, false)).toBe(reason)
  if (reason === "images" || reason === undefined)
    expect(incomplete({ attachments: [], ...message }, true)).toBeUndefined()
  else expect(incomplete({ attachments: [], ...message }, true)).toBe(reason)
})
