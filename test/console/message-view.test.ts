/** What is shown of a message, without a browser: its row in a conversation, its people, and the views of its content. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, source } from "./Modules.ts"

const { Body } = await source("mail/Body.tsx")
const { MessageItem } = await source("mail/Message.tsx")
const { Addresses } = await source("mail/MessageParts.tsx")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  vi.stubGlobal("localStorage", new Entries())
  calls = heldCalls()
  await browserAt("/identities/ada/mail/msg_1")
})
afterEach(leavePage)

const person = (address: string, name: string | null = null) => ({ address, name })
const message = {
  id: "msg_1",
  direction: "inbound",
  status: "received",
  from: person("grace@example.org", "Grace") as object | null,
  to: [person("ada@example.org")],
  cc: [],
  bcc: [],
  reply_to: [],
  seen: true,
  flagged: false,
  tags: [] as ReadonlyArray<string>,
  labels: [],
  headers: [{ name: "X-Own", value: "1" }],
  attachments: [] as ReadonlyArray<object>,
  html: null as string | null,
  text: "words" as string | null,
  text_reply: null as string | null,
  snippet: "the beginning",
  size: 200_000,
  received_at: "2026-11-20T08:00:00.000Z",
  origin: { verdict: "unverified" } as object,
}

describe("The content of a message", () => {
  const opened = (more: Partial<typeof message>) => drawn(Body, { handle: "ada", message: { ...message, ...more } })
  const names = ({ top }: Awaited<ReturnType<typeof opened>>) =>
    top
      .all({ role: "group" })[0]!
      .all("button")
      .map(({ textContent }) => textContent)

  it("has a view as HTML if it has HTML, and always as text, headers and source", async () => {
    expect(names(await opened({}))).toEqual(["Text", "Headers", "Source"])
    const page = await opened({ html: "<p>words</p>", origin: { verdict: "failed" } })
    expect(names(page)).toEqual(["Text", "HTML", "Headers", "Source"])
    await page.press("HTML")
    expect(page.top.all("iframe").length).toBe(1)
    await page.press("Headers")
    expect([page.facts(), page.top.all("iframe").length]).toEqual([{ "X-Own": "1" }, 0])
    await page.press("Text")
    const [text] = page.top.all({ class: "message-text" })
    // It can be scrolled with the keyboard, and does not come before other controls.
    expect([text!.textContent, text!.attributes["tabIndex"]]).toEqual(["words", "0"])
  })

  it.each([
    [200_000, false],
    [200_001, true],
  ])("has a source of %d bytes, which is cut: %s, and can be downloaded whole", async (size, isCut) => {
    const { top, press } = await opened({ size })
    await press("Source")
    const { url } = await calls.answered(200, { a: 1 })
    expect(url).toBe("/api/identities/ada/messages/msg_1/raw")
    await eventually(() => expect(top.all("pre")[0]?.textContent).toBe('{"a":1}'))
    const [link] = top.all("a")
    expect([link!.attributes["href"], link!.attributes["download"]]).toEqual([url, "msg_1.eml"])
    expect(top.textContent.includes("Only the beginning is shown")).toBe(isCut)
  })

  it.each([
    [{ text: null }, undefined, false],
    [{ text: " \n" }, undefined, false],
    [{ text: "a".repeat(200_000) }, 200_000, false],
    [{ text: "a".repeat(200_001) }, 200_000, true],
  ])("says if it has no text, and if its text is cut (%#)", async (more, shown, isCut) => {
    const { top } = await opened(more)
    expect(top.all("pre")[0]?.textContent.length).toBe(shown)
    expect(top.textContent.includes("This message has no text")).toBe(shown === undefined)
    expect(top.textContent.includes("Only the beginning is shown")).toBe(isCut)
  })

  it.each([
    ["yes", true],
    [" words\n", false],
    [" ", false],
  ])("has quotes that can be shown if its reply %j is another text: %s", async (text_reply, isFolded) => {
    const { button } = await opened({ text_reply })
    expect(button("Show quoted text") !== undefined).toBe(isFolded)
  })

  it.each([
    ['<img src="https://images.example/a.png">', true],
    ['<IMG src="HTTP://images.example/a.png">', true],
    ['<img src="cid:a">', false],
    ['<a href="https://site.example">x</a>', false],
  ])("loads remote images only on request, which it offers if there may be some (%s): %s", async (html, offers) => {
    const { button, press, top } = await opened({ html, text: null })
    const frame = () => top.all("iframe")[0]!.attributes["src"]
    expect([button("Show images") !== undefined, frame()]).toEqual([offers, "/console/mail/ada/msg_1/body"])
    if (!offers) return
    await press("Show images")
    expect([button("Show images"), frame()]).toEqual([undefined, "/console/mail/ada/msg_1/body?images=1"])
  })
})

describe("A message in a conversation", () => {
  const row = async (more: object) => {
    const summary = { ...message, ...more }
    const { top } = await drawn(MessageItem, { handle: "ada", summary, open: false, onToggle() {}, onRemoved() {} })
    const [sender, snippet] = top.all("bdi").map(({ textContent }) => textContent)
    const [marks] = top.all({ class: "marks" })
    return { sender, snippet, marks: marks!.textContent, icons: marks!.all("svg").length }
  }
  const plain = { sender: "Grace", snippet: "the beginning", marks: "Unverified", icons: 0 }

  it.each([
    [{}, {}],
    [{ from: person("grace@example.org") }, { sender: "grace@example.org" }],
    [{ from: null }, { sender: "(no sender)" }],
    [{ text_reply: "what is new" }, { snippet: "what is new" }],
    [{ seen: false }, { marks: "UnreadUnverified" }],
    [{ flagged: true }, { icons: 1 }],
    [{ attachments: [{}] }, { icons: 1 }],
    [{ flagged: true, attachments: [{}] }, { icons: 2 }],
    [{ direction: "outbound" }, { marks: "Sent" }],
    [{ origin: { verdict: "verified" } }, { marks: "Verified" }],
  ])("that is collapsed and differs in %j shows %j", async (more, expected) =>
    expect(await row(more)).toEqual({ ...plain, ...expected }),
  )

  const opened = async (more: object) => {
    const whole = { ...message, ...more }
    const page = await drawn(MessageItem, { handle: "ada", summary: whole, open: true, onToggle() {}, onRemoved() {} })
    await calls.answered(200, whole)
    await eventually(() => expect(page.top.textContent).toContain("Forward"))
    return page
  }

  it("has the facts that are known of it", async () => {
    const agent = { did: "did:web:site.example", domain: "site.example", checked_at: "2026-11-20T08:00:00Z" }
    const many = Array.from({ length: 42 }, (_, n) => person(`${n}@example.org`))
    const one = await opened({ from: null, tags: ["shop"], to: many, attachments: [] })
    const facts = one.facts()
    // The first three are the checks of the sender.
    expect(Object.keys(facts).slice(3)).toEqual(["From", "To", "Received", "Tag"])
    expect([facts["From"], facts["To"]]).toEqual(["(no sender)", expect.stringMatching(/39@example\.org and 2 more$/)])
    expect(one.top.textContent).not.toContain("Attachments")
    await leavePage()
    calls = heldCalls()
    const other = await opened({ origin: { verdict: "verified", agent }, tags: ["shop", "toys"] })
    expect(Object.keys(other.facts())).toEqual(expect.arrayContaining(["Agent", "DID", "Tags"]))
    expect(other.top.all({ class: "tag" }).map(({ textContent }) => textContent)).toEqual(["shop", "toys"])
  })

  it("offers the marks that it does not have, and lists the type and size of its files", async () => {
    const files = [{ index: 0, filename: "plan.pdf", content_type: "application/pdf", size: 2_000 }]
    const { button, top } = await opened({ flagged: true, attachments: files })
    expect(button("Flagged")!.attributes["aria-pressed"]).toBe("true")
    expect(button("Mark as unread")).toBeDefined()
    expect(top.all({ class: "box rows attachments" })[0]!.textContent).toBe("plan.pdfapplication/pdf2 kB")
  })

  it("that does not exist any more is named as such", async () => {
    const { top } = await drawn(MessageItem, {
      handle: "ada",
      summary: message,
      open: true,
      onToggle() {},
      onRemoved() {},
    })
    await calls.answered(404, { status: 404, detail: "no", agent_hint: "stop", code: "not_found" })
    await eventually(() => expect(top.textContent).toContain("Message not found"))
  })
})

it.each([
  [[], undefined, ""],
  [[person("a@x.example", "A")], undefined, "A <a@x.example>"],
  [[person("a@x.example", "A"), person("b@x.example")], undefined, "A <a@x.example>, b@x.example"],
  [[person("a@x.example"), person("b@x.example")], 2, "a@x.example, b@x.example"],
  [[person("a@x.example"), person("b@x.example")], 1, "a@x.example and 1 more"],
])("Addresses are listed with their names, up to a limit (%#)", async (of, atMost, text) =>
  expect((await drawn(Addresses, { of, atMost })).top.textContent).toBe(text),
)

it("A message is collapsed and expanded by its head", async () => {
  const onToggle = vi.fn()
  const { top, fire } = await drawn(MessageItem, {
    handle: "ada",
    summary: message,
    open: false,
    onToggle,
    onRemoved() {},
  })
  const [head] = top.all("button")
  expect(head!.attributes["aria-expanded"]).toBe("false")
  await fire(head, "click")
  expect(onToggle).toHaveBeenCalledTimes(1)
})
