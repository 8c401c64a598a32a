/** The texts about the sender, the delivery and the labels of a message, without a browser. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { browserAt, drawn, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { Verdict, VerdictNote } = await source("mail/Verdict.tsx")
const { AgentMark } = await source("mail/AgentMark.tsx")
const { DeliveryState } = await source("mail/Delivery.tsx")
const { Labels, useMarking } = await source("mail/Marks.tsx")
const { client } = await source("client/Queries.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  await browserAt("/identities/ada/mail/msg_1")
})
afterEach(leavePage)

it.each([
  ["verified", "Verified", "ok", /^Sent by site\.example: SPF or DKIM passed/],
  ["unverified", "Unverified", "off", /./],
  ["failed", "Suspicious", "bad", /site\.example/],
  ["error", "Not checked", "warn", /./],
])("A sender that is %s is shown as such, with the result of each check", async (verdict, text, tone, why) => {
  const origin = { verdict, domain: "site.example", spf: "pass", dkim: "fail", dmarc: "none" }
  const badge = await drawn(Verdict, { origin })
  expect([badge.top.textContent, badge.top.all({ "data-tone": tone }).length]).toEqual([text, 1])
  const { top } = await drawn(VerdictNote, { origin })
  const [note] = top.all({ class: "note" })
  expect(note!.attributes["data-tone"]).toBe(tone === "off" ? undefined : tone)
  expect(note!.all("span")[0]!.textContent).toMatch(why)
  expect(top.all("summary")[0]!.textContent).toBe("SPF pass · DKIM fail · DMARC none")
})

it.each([
  ["site.example", "site.example", /^site\.example signed this message/],
  [null, "This service", /^An agent of this service sent/],
])("A verified agent says who signed: %s", async (domain, by, why) => {
  const agent = { did: "did:web:site.example", domain, checked_at: "2026-11-20T08:00:00Z" }
  const { top, facts } = await drawn(AgentMark, { agent })
  expect(facts()).toMatchObject({ DID: "did:web:site.example", "Signed by": by })
  expect(top.all("p")[0]!.textContent).toMatch(why)
})

describe("An outgoing message", () => {
  const recipient = (status: string, more: object = {}) => ({
    address: `${status}@example.org`,
    status,
    updated_at: "2026-11-20T08:00:00Z",
    reason: null,
    reply: null,
    next_attempt_at: null,
    ...more,
  })
  const approval = {
    requested_at: "2026-11-20T08:00:00Z",
    expires_at: "2026-11-27T08:00:00Z",
    decided_at: null,
    reason: null,
  }
  const shown = (message: object, isStopped = false) =>
    drawn(DeliveryState, { handle: "ada", message: { id: "msg_1", status: "queued", ...message }, isStopped })

  it("shows the state of each recipient with the reply of the recipient's server", async () => {
    const reply = { host: "mx.example.org", code: 550, status: "5.1.1", text: "no such user" }
    const delivery = [
      recipient("queued", { reason: "waits for its turn" }),
      recipient("sent"),
      recipient("deferred", { next_attempt_at: "2026-11-20T09:00:00Z" }),
      recipient("bounced", { reply }),
    ]
    const { top } = await shown({ delivery })
    const rows = top.all("ul")[0]!.all("li")
    expect(rows.map((row) => row.all({ class: "status" })[0]?.textContent)).toEqual([
      "Queued",
      "Delivered",
      "Deferred, will be retried",
      "Bounced",
    ])
    expect(rows[0]!.textContent).toContain("On hold: waits for its turn")
    expect(rows.map(({ textContent }) => textContent.includes("Next attempt"))).toEqual([false, false, true, false])
    const times = rows.map((row) => row.all("time").map(({ attributes }) => attributes["dateTime"]!.slice(11, 13)))
    expect(times).toEqual([["08"], ["08"], ["08", "09"], ["08"]])
    expect(rows[3]!.textContent).toContain("mx.example.org 550 5.1.1 no such user")
    expect(top.textContent).toContain("You can lift this under")
  })

  it.each([
    [{ host: null, code: 450, status: null, text: "" }, "450"],
    [{ host: "mx.example.org", code: 250, status: "", text: "Ok" }, "mx.example.org 250 Ok"],
  ])("shows the known parts of a reply: %j", async (reply, text) => {
    const { top } = await shown({ delivery: [recipient("sent", { reply })] })
    expect(top.all({ class: "small muted reply" })[0]!.textContent).toBe(text)
    expect(top.textContent).not.toContain("You can lift this under")
    expect(top.textContent).not.toContain("On hold")
  })

  it("without recipients and approval shows nothing of both", async () => {
    for (const more of [{}, { delivery: [], approval: null }]) expect((await shown(more)).top.textContent).toBe("")
    const { top } = await shown({ approval })
    expect(top.textContent).toBe("Approved by a person.")
  })

  it.each([
    [true, ["queued"], true],
    [true, ["sent", "deferred"], true],
    [true, ["sent", "bounced"], false],
    [false, ["queued"], false],
  ])("says that it is held while mail is stopped (%s, %j): %s", async (isStopped, states, isHeld) => {
    const { top } = await shown({ delivery: states.map((state) => recipient(state)) }, isStopped)
    expect(top.textContent.includes("Outgoing mail is stopped")).toBe(isHeld)
  })

  it("leads to its own review while it awaits approval, and shows no delivery", async () => {
    const { top } = await shown({ status: "awaiting_approval", approval, delivery: [recipient("queued")] })
    expect(top.all("a").map(({ attributes }) => attributes["href"])).toEqual([
      "/console/identities/ada/mail/approvals/msg_1",
      "/console/identities/ada/mail/approvals",
    ])
    const times = [approval.requested_at, approval.expires_at]
    expect(top.all("time").map(({ attributes }) => attributes["dateTime"])).toEqual(times)
    expect(top.all("ul").length).toBe(0)
  })

  it.each([
    ["refused", "Rejected. This message was not sent.", "bad"],
    ["queued", "Approved by a person.", undefined],
  ])("that is %s shows the decision and its reason", async (status, text, tone) => {
    const decided = { ...approval, decided_at: "2026-11-20T09:00:00Z", reason: "Not before Monday" }
    const { top } = await shown({ status, approval: decided })
    const [note] = top.all({ class: "note" })
    expect(note!.attributes["data-tone"]).toBe(tone)
    expect(note!.textContent).toMatch(new RegExp(`^${text}.*Not before Monday$`))
    expect(note!.all("time").map(({ attributes }) => attributes["dateTime"])).toEqual([decided.decided_at])
  })
})

describe("The labels of a message", () => {
  const at = "/api/identities/ada/messages/msg_1"
  const opened = (...labels: ReadonlyArray<string>) => {
    const One = () => Labels({ handle: "ada", labels: ["old", "todo", ...labels], mark: useMarking("ada", "msg_1") })
    return drawn(One, {})
  }

  it("lead to the messages that have them, and change their conversation as well", async () => {
    const threads = ["GET /api/identities/:handle/threads", { params: { handle: "ada" } }]
    client.setQueryData(threads, { threads: [] })
    const { top, press } = await opened("a&b")
    expect(top.all("a").map(({ attributes }) => attributes["href"])).toEqual(
      ["old", "todo", "a%26b"].map((label) => `/console/identities/ada/mail?label=${label}`),
    )
    await press(top.all({ class: "tag chip" })[2]!.all("button")[0]!.attributes["aria-label"]!)
    await calls.answered(200, {})
    await eventually(() => expect(client.getQueryState(threads)?.isInvalidated).toBe(true))
  })

  it("are removed one by one, and the others stay", async () => {
    const { top, press } = await opened()
    await press(top.all({ class: "tag chip" })[0]!.all("button")[0]!.attributes["aria-label"]!)
    const { method, url, body } = await calls.next()
    expect([method, url, body]).toEqual(["PATCH", at, { labels: ["todo"] }])
  })

  it("gain one in small letters, none twice, and keep what was typed if it is rejected", async () => {
    const { top, enter, submit, fire, field } = await opened()
    await fire(top.all({ popover: "auto" })[0], "beforetoggle")
    const label = top.all("label")[0]!.textContent
    await enter(label, " TODO ")
    await submit()
    expect([calls.waiting(), field(label)!.attributes["value"]]).toEqual([0, ""])
    await enter(label, " Invoice ")
    await submit()
    const request = await calls.next()
    expect(request.body).toEqual({ labels: ["old", "todo", "invoice"] })
    await act(async () => request.answer(422, problem(422, { errors: [{ path: "/labels/2", message: "too long" }] })))
    await eventually(() => expect(top.all({ class: "wrong" })[0]?.textContent).toBe("too long"))
    expect(field(label)!.attributes["value"]).toBe(" Invoice ")
  })
})
