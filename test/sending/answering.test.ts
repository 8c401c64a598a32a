/** Recipients and subject of replies, for any original message. */
import { derive } from "@svc/cluster/mail/sending/ReplyHeaders"
import type { MessageSummary } from "@svc/domain/mail/Message"
import { describe, expect, it } from "vitest"

const own = "research-bot@mail.example"
const person = (address: string) => ({ address, name: null })

const message = (given: Partial<MessageSummary>) =>
  ({
    direction: "inbound",
    from: person("grace@example.org"),
    to: [person(own)],
    cc: [],
    reply_to: [],
    subject: "Numbers",
    message_id: "<one@example.org>",
    in_reply_to: null,
    references: [],
    ...given,
  }) as unknown as MessageSummary

const answer = (given: Partial<MessageSummary>, all = false) =>
  derive(message(given), { text: "Yes.", ...(all ? { reply_all: true } : {}) }, own)

describe("a reply", () => {
  it.each([
    ["its address", own],
    ["its address under a tag", "research-bot+invoices@mail.example"],
    ["another spelling of its Handle", "ResearchBot@MAIL.example"],
    ["another spelling under a tag", "re-search-bot+a+b@mail.example"],
  ])("leaves out the Identity itself: %s", (_, address) => {
    const list = { reply_to: [person("list@example.org"), person(address)] }
    expect(answer(list).to).toEqual(["list@example.org"])
    expect(answer(list, true)).toMatchObject({ to: ["list@example.org"], cc: ["grace@example.org"] })
    expect(answer({ to: [person(address)], cc: [person("bob@example.org"), person(address)] }, true)).toMatchObject({
      to: ["grace@example.org"],
      cc: ["bob@example.org"],
    })
    expect(answer({ direction: "outbound", to: [person(address), person("bob@example.org")] }).to).toEqual([
      "bob@example.org",
    ])
  })

  it("is addressed to the Identity itself if there is no other recipient, and to the same name at other domains", () => {
    expect(answer({ from: person(own) }).to).toEqual([own])
    expect(answer({ reply_to: [person("researchbot@example.org")] }).to).toEqual(["researchbot@example.org"])
  })

  it("goes to the given recipients, and to the others of the message only on request", () => {
    const [bob, eve] = ["bob@example.org", "eve@example.org"]
    const to = (mail: { to?: Array<string>; cc?: Array<string>; reply_all?: boolean }) => {
      const derived = derive(message({ cc: [person(bob)] }), { text: "Yes.", ...mail }, own)
      return [derived.to, derived.cc]
    }
    expect(to({})).toEqual([["grace@example.org"], []])
    expect(to({ to: [] })).toEqual([["grace@example.org"], []])
    expect(to({ to: [eve] })).toEqual([[eve], []])
    expect(to({ to: [eve], reply_all: true })).toEqual([[eve], ["grace@example.org", bob]])
    expect(to({ cc: [eve], reply_all: true })).toEqual([["grace@example.org"], [eve]])
    // A reply to an own message continues it.
    const sent = { direction: "outbound", from: person(own), to: [person(bob)], cc: [person(eve)] } as const
    expect(answer(sent, true)).toMatchObject({ to: [bob], cc: [eve] })
    expect(derive(message(sent), { text: "Yes.", to: ["zoe@example.org"], reply_all: true }, own).cc).toEqual([eve])
    expect(answer({ from: null }).to).toEqual([])
  })

  it.each(["Re: a", " re: a", "AW : a", "Antwort[2]: a"])("keeps the subject %j of a reply", (subject) => {
    expect(answer({ subject }).subject).toBe(subject)
    expect(answer({ subject: `Report ${subject}` }).subject).toBe(`Re: Report ${subject}`)
  })

  it.each([
    ["line breaks", "a\r\nBcc: evil@example.org\r\n\r\nbody", "Re: a Bcc: evil@example.org body"],
    ["what moves a cursor", "a\u001b[31m\u0001\u0085\u2028b", "Re: a [31m b"],
    ["nothing else", "\r\n", "Re:"],
  ])("has a subject of one line, where that of the message holds %s", (_, subject, expected) => {
    expect(answer({ subject }).subject).toBe(expected)
  })

  it("limits the subject to the maximum length without splitting a character", () => {
    const { subject } = answer({ subject: `${"a".repeat(895)}${"\u{1f600}".repeat(50)}` })
    expect(subject.length).toBeLessThanOrEqual(900)
    expect(subject.isWellFormed()).toBe(true)
  })

  it("removes unnecessary quotation marks from an address and keeps necessary ones", () => {
    const to = (address: string) => answer({ reply_to: [person(address)] }).to
    expect(to('"ada.l"@example.org')).toEqual(["ada.l@example.org"])
    expect(to('"a\\d\\a"@example.org')).toEqual(["ada@example.org"])
    for (const kept of ['"a b"@example.org', '"evil@x.example"@example.org', '"a"b@example.org', '""@example.org']) {
      expect(to(kept)).toEqual([kept])
    }
    expect(answer({ from: person('"grace"@example.org'), cc: [person("grace@example.org")] }, true)).toMatchObject({
      to: ["grace@example.org"],
      cc: [],
    })
  })

  it("belongs to the thread of the message", () => {
    expect(answer({ references: ["<zero@example.org>"] })).toMatchObject({
      in_reply_to: "<one@example.org>",
      references: ["<zero@example.org>", "<one@example.org>"],
    })
    // A program may have set only In-Reply-To.
    const replied = { in_reply_to: "<zero@example.org>" }
    expect(answer(replied).references).toEqual(["<zero@example.org>", "<one@example.org>"])
    expect(answer({ ...replied, references: ["<first@example.org>"] }).references).toEqual([
      "<first@example.org>",
      "<one@example.org>",
    ])
  })

  it("names the first message of a thread with more than 40 messages, and the newest ones", () => {
    const referencing = (count: number) => {
      const references = Array.from({ length: count }, (_, n) => `<${n}@example.org>`)
      return [answer({ references }).references, references] as const
    }
    const [whole, all] = referencing(39)
    expect(whole).toEqual([...all, "<one@example.org>"])
    const [cut, more] = referencing(40)
    expect(cut).toEqual([more[0], ...more.slice(2), "<one@example.org>"])
  })

  it("has each recipient once, in the first spelling", () => {
    const cc = ["Bob@example.org", "bob@EXAMPLE.org", "Grace@Example.org", "eve@example.org"].map(person)
    expect(answer({ cc }, true)).toMatchObject({
      to: ["grace@example.org"],
      cc: ["Bob@example.org", "eve@example.org"],
    })
  })

  it("belongs to the thread of a message whose id has no @, but not if the id cannot be sent in a header", () => {
    expect(answer({ message_id: "<20261122.A1>", references: ["<first>"] })).toMatchObject({
      in_reply_to: "<20261122.A1>",
      references: ["<first>", "<20261122.A1>"],
    })
    const quoted = '<"quoted id"@example.org>'
    expect(answer({ message_id: quoted, references: ['<"a b" c@x>', "<first>"] })).toMatchObject({
      in_reply_to: quoted,
      references: ["<first>", quoted],
    })
    for (const message_id of [
      "<quoted id@example.org>",
      "<\u00e9@example.org>",
      "<a\r\nBcc: evil@example.org>",
      `<${"a".repeat(600)}@b>`,
      null,
    ]) {
      expect(answer({ message_id }).in_reply_to).toBeUndefined()
    }
  })
})
