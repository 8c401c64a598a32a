/** What the console shows of an answer before it is sent is what the service would make of it. */
import { answerTo, passingOn, quote, recipientsOf } from "../../packages/console/src/compose/answering.ts"
import { derive } from "@svc/cluster/mail/sending/ReplyHeaders"
import { describe, expect, it } from "vitest"

const person = (address: string) => ({ address, name: null })
const own = "ada@mail.localhost"

const message = (part: object) => ({
  id: "msg_00000000000000000000000000",
  thread_id: "thr_00000000000000000000000000",
  direction: "inbound" as const,
  from: person("grace@example.org"),
  to: [person(own)],
  cc: [],
  bcc: [],
  reply_to: [],
  subject: "Minutes",
  snippet: "",
  in_reply_to: null,
  references: [],
  attachments: [],
  message_id: "<1@example.org>",
  tag: null,
  tags: [],
  origin: { verdict: "verified" as const, spf: "pass", dkim: "pass", dmarc: "pass", domain: "example.org" },
  size: 1,
  received_at: new Date(0),
  seen: false,
  flagged: false,
  labels: [],
  text: null,
  text_reply: null,
  ...part,
})

describe("an answer goes to whom the service would send it", () => {
  it.each([
    ["a letter", {}],
    ["one that wants its answers elsewhere", { reply_to: [person("list@example.org"), person("LIST@example.org")] }],
    [
      "one to many, among them the agent under a tag",
      {
        to: [person("Ada+x@mail.localhost"), person("bob@example.org"), person("Grace@Example.org")],
        cc: [person("carl@example.org"), person("bob@example.org")],
      },
    ],
    [
      "one of its own",
      { direction: "outbound", from: person(own), to: [person("bob@example.org")], cc: [person("carl@example.org")] },
    ],
    [
      "one that wants its answers at a list and at the agent, in another spelling",
      {
        reply_to: [person("list@example.org"), person("a-DA+list@mail.localhost")],
        to: [person("A-da@mail.localhost")],
      },
    ],
    ["one that the agent wrote to itself", { from: person(own), reply_to: [person("ada+notes@mail.localhost")] }],
    ["one from nobody", { from: null, subject: "AW: Re: x" }],
  ])("%s", (_, part) => {
    const original = message(part) as Parameters<typeof derive>[0] & Parameters<typeof recipientsOf>[0]
    for (const all of [false, true]) {
      const theirs = derive(original, { reply_all: all }, own)
      expect(recipientsOf(original, all, own)).toEqual({ to: theirs.to, cc: theirs.cc })
      expect(answerTo(original.subject)).toBe(theirs.subject)
    }
  })
})

describe("what is quoted", () => {
  it("is what its author wrote, each line marked, and no more of it than is read", () => {
    const original = message({ text: "a\n\nb\n> c", text_reply: "a\n\nb" }) as Parameters<typeof quote>[0]
    expect(quote(original, "Grace wrote:")).toBe("\n\nGrace wrote:\n> a\n>\n> b\n")
    expect(quote({ ...original, text_reply: null, text: "x".repeat(1_000_000) }, "").length).toBeLessThan(21_000)
    expect(quote({ ...original, text_reply: "", text: "" }, "x")).toBe("")
  })

  it("has a subject of one line that says once what it is", () => {
    expect(passingOn("Fwd: x")).toBe("Fwd: x")
    expect(passingOn("a\r\nBcc: b")).toBe("Fwd: a Bcc: b")
    expect(answerTo(`Re: ${"x".repeat(2000)}`).length).toBeLessThanOrEqual(900)
  })
})
