/** The composer derives replies in the same way as the service. */
import {
  answerTo,
  passedOnText,
  passingOn,
  quote,
  recipientsOf,
  splitQuote,
} from "../../packages/console/src/compose/answering.ts"
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

describe("Recipients and subject of a reply equal those of the service for", () => {
  it.each([
    ["a message", {}],
    ["a message with Reply-To", { reply_to: [person("list@example.org"), person("LIST@example.org")] }],
    [
      "a message to several recipients with a tag of the agent",
      {
        to: [person("Ada+x@mail.localhost"), person("bob@example.org"), person("Grace@Example.org")],
        cc: [person("carl@example.org"), person("bob@example.org")],
      },
    ],
    [
      "a message that the agent sent",
      { direction: "outbound", from: person(own), to: [person("bob@example.org")], cc: [person("carl@example.org")] },
    ],
    [
      "a message with Reply-To a list and another spelling of the agent",
      {
        reply_to: [person("list@example.org"), person("a-DA+list@mail.localhost")],
        to: [person("A-da@mail.localhost")],
      },
    ],
    ["a message of the agent to itself", { from: person(own), reply_to: [person("ada+notes@mail.localhost")] }],
    ["a message without a sender", { from: null, subject: "AW: Re: x" }],
  ])("%s", (_, part) => {
    const original = message(part) as Parameters<typeof derive>[0] & Parameters<typeof recipientsOf>[0]
    for (const all of [false, true]) {
      const theirs = derive(original, { reply_all: all }, own)
      expect(recipientsOf(original, all, own)).toEqual({ to: theirs.to, cc: theirs.cc })
      expect(answerTo(original.subject)).toBe(theirs.subject)
    }
  })
})

describe("Quoted text", () => {
  it("marks each line of the author's text and limits its length", () => {
    const original = message({ text: "a\n\nb\n> c", text_reply: "a\n\nb" }) as Parameters<typeof quote>[0]
    expect(quote(original, "Grace wrote:")).toBe("\n\nGrace wrote:\n> a\n>\n> b\n")
    expect(quote({ ...original, text_reply: null, text: "x".repeat(1_000_000) }, "").length).toBeLessThan(21_000)
    expect(quote({ ...original, text_reply: "", text: "" }, "x")).toBe("")
  })

  it("is split from the text above it", () => {
    const quoted = "\n\nOn Monday, Grace wrote:\n> a\n>\n> b\n"
    expect(splitQuote(`Mine.${quoted}`)).toEqual({ own: "Mine.", quoted })
    expect(splitQuote(quoted)).toEqual({ own: "", quoted })
    for (const text of ["", "> a", "Mine.\n> a", "Grace wrote:\n> a\nMine.", "Mine."])
      expect(splitQuote(text)).toEqual({ own: text, quoted: "" })
  })

  it("is complete in a forwarded message, up to 100,000 characters", () => {
    const original = message({ text: "x".repeat(200_000), text_reply: "x" }) as Parameters<typeof passedOnText>[0]
    const text = passedOnText(original, { head: "", fields: [] })
    expect(text.replaceAll(/[^x]/g, "").length).toBe(100_000)
  })

  it("goes with a single-line subject with one prefix", () => {
    for (const mark of ["Fwd", "FW", "WG", "TR", "I", "RV", "Enc"]) expect(passingOn(`${mark}: x`)).toBe(`${mark}: x`)
    expect(passingOn("a\r\nBcc: b")).toBe("Fwd: a Bcc: b")
    expect(answerTo(`Re: ${"x".repeat(2000)}`).length).toBeLessThanOrEqual(900)
  })
})
