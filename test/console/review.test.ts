/** The review of a message before it is sent, without a browser: what it shows, and what a decision says. */
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
    const { facts, top } = await opened({ cc: [], bcc: [], reply_to: [], from: null, differences: null, html: null })
    expect(Object.keys(facts())).toEqual(["To", "Requested", "Expires"])
    expect([top.all("iframe").length, top.all("pre")[0]!.textContent]).toEqual([0, "pay 1"])
    expect(top.textContent).not.toContain("As recipients see it")
  })

  it("approves the content that it shows, and then opens the message", async () => {
    const { press } = await opened()
    await press("Approve and send")
    const request = await answered(200, {})
    expect([request.method, request.url, request.body]).toEqual(["POST", `${at}/approve`, { content_sha256: "one" }])
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/mail/msg_1"]))
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
    await answered(409, problem(409))
    const again = await answered(200, { ...pending, html, content_sha256: "two", subject: "Other" })
    expect([again.method, again.url]).toEqual(["GET", at])
    await eventually(() => expect(top.all("h2")[0]!.textContent).toBe("Other"))
    expect(button("Approve and send")!.attributes["disabled"]).toBe("true")
    expect(entries).toEqual([])
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
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/mail/msg_1"]))
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
  const { top } = await drawn(Approvals, { handle: "ada" })
  const files = [{ filename: "a.pdf" }, { filename: null }]
  const approvals = [one("msg_1", { attachments: files }), one("msg_2", { subject: "", cc: [], bcc: [] })]
  await answered(200, { approvals, next_cursor: null })
  await eventually(() => expect(top.all("article").length).toBe(2))
  const [first, second] = top.all("article")
  expect(first!.all("dd")[0]!.textContent).toBe("to@example.org, second@example.org, cc@example.org, bcc@example.org")
  expect(first!.textContent).toContain("2 attachments: a.pdf, Unnamed file")
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
  ["http_images", { html: '<img src="http://images.example/a.png"><img src="https://images.example/a.png">' }],
  ["images", { html: '<img src="https://images.example/a.png">'.repeat(200) }],
  // The frame leaves out further images, and images with a long address, also after a person asked for them.
  ["too_long", { html: '<img src="https://images.example/a.png">'.repeat(201) }],
  ["images", { html: `<img alt="a" src="https://images.example/${"ü".repeat(600)}">` }],
  ["too_long", { html: `<img alt="a" src="https://images.example/${"ü".repeat(700)}">` }],
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
