/** The fields of a mail program's header that are kept, and their limits. */
import { rewrite } from "@svc/mail-gateway/mail/composing/MessageRewriter"
import { describe, expect, it } from "vitest"

const now = new Date("2026-03-31T12:00:00Z")

/** Rewrites a message with these fields, and one From unless the fields have their own. */
const rewritten = async (fields: string, body = "x", domain = "mail.example") => {
  const from = /^From:/im.test(fields) ? "" : "From: Ada <ada@mail.example>\r\n"
  const raw = `${from}To: bob@example.org\r\n${fields}\r\n\r\n${body}`
  return rewrite({
    raw: new Uint8Array(Buffer.from(raw)),
    author: { address: `ada@${domain}`, canonical: "ada", domain },
    messageId: "<made@mail.example>",
    date: now,
    did: "did:web:mail.example:%40ada",
    disclosure: "An AI wrote this message.",
    language: "en",
  })
}

/** Returns the rewritten message and its lines of the header. */
const kept = async (fields: string, body?: string, domain?: string) => {
  const outcome = await rewritten(fields, body, domain)
  if (outcome._tag !== "Rewritten") throw new Error(JSON.stringify(outcome))
  const text = Buffer.from(outcome.rewritten.content.raw).toString("latin1")
  return { ...outcome.rewritten, lines: text.split("\r\n\r\n")[0]!.split("\r\n") }
}

const path = async (fields: string, domain?: string) => {
  const outcome = await rewritten(fields, "x", domain)
  return outcome._tag === "Faulty" ? outcome.path : outcome._tag
}

describe("The author of a submitted message", () => {
  it("is the Identity without a tag, whatever the case of its domain", async () => {
    expect(await path("From: ada+news@mail.example")).toBe("/from")
    expect(await path("From: ada@other.example")).toBe("/from")
    expect((await kept("From: ADA@mail.EXAMPLE", "x", "Mail.Example")).from.address).toBe("ada@Mail.Example")
    expect((await kept("Reply-To: ada+news@MAIL.example")).replyTo[0]?.address).toBe("ada+news@mail.example")
  })

  it("may show at most 200 recipients in a field", async () => {
    const cc = (count: number) => `Cc: ${Array.from({ length: count }, (_, n) => `a${n}@x.example`).join(",\r\n ")}`
    expect([await path(cc(200)), await path(cc(201))]).toEqual(["Rewritten", "/cc"])
  })

  it("and recipients have names in one line, and none that contains an address", async () => {
    const { from, cc } = await kept(
      "From: =?utf-8?q?A=0Ada?= <ada@mail.example>\r\nCc: =?utf-8?q?B=0Ab?= <b@x.example>, =?utf-8?q?c=40y.example?= <c@x.example>",
    )
    expect([from.name, ...cc.map(({ name }) => name)]).toEqual(["A da", "B b", null])
  })
})

describe("The date of a submitted message", () => {
  it.each([
    ["Sun, 1 Mar 2026 12:00:00 +0000", true],
    ["Sun, 1 Mar 2026 11:59:59 +0000", false],
    ["Wed, 1 Apr 2026 12:00:00 +0000", true],
    ["Wed, 1 Apr 2026 12:00:01 +0000", false],
    ["31 Mar 2026 13:00 +0100", true],
    ["Tue, 31 Mar 2026 12:00:00 GMT", false],
  ])("is kept if it is at most 30 days old and one day ahead: %s", async (date, isKept) => {
    const { lines } = await kept(`Date: ${date}`)
    expect(lines).toContain(isKept ? `Date: ${date}` : "Date: Tue, 31 Mar 2026 12:00:00 +0000")
  })
})

describe("The thread of a submitted message", () => {
  it("has the last hundred valid ids, or else that of the parent", async () => {
    const ids = Array.from({ length: 101 }, (_, n) => `<${n}@x.example>`)
    const { references } = await kept(`References: ${ids.join("\r\n ")}`)
    expect(references).toEqual(ids.slice(1))
    expect((await kept("In-Reply-To: <q@x.example>")).references).toEqual(["<q@x.example>"])
    expect((await kept("In-Reply-To: <é@x.example> <q@x.example>")).inReplyTo).toBe("<q@x.example>")
    expect((await kept("References: <é@x.example> <q@x.example>")).references).toEqual(["<q@x.example>"])
  })

  it("is folded between its ids, but not before the first one", async () => {
    const long = `<${"a".repeat(80)}@x.example>`
    const { lines } = await kept(`References: ${long}\r\n <b@x.example>`)
    const at = lines.findIndex((line) => line.startsWith("References:"))
    expect(lines.slice(at, at + 2)).toEqual([`References: ${long}`, " <b@x.example>"])
  })

  it("has the message's own id if it is valid, or a new one", async () => {
    expect((await kept("Message-ID: <no at> <own> <own@laptop>")).messageId).toBe("<own@laptop>")
    expect((await kept("Message-ID: <own>")).messageId).toBe("<made@mail.example>")
  })
})

describe("The additional fields of a submitted message", () => {
  const added = async (...fields: ReadonlyArray<string>) =>
    (await kept(fields.join("\r\n"))).lines.filter((line) => /^(?:X-|List-|Organization)/.test(line))

  it("are twenty, each once, with a value of at most 900 characters", async () => {
    const many = Array.from({ length: 21 }, (_, n) => `X-Field-${n}: 1`)
    expect(await added(...many)).toEqual(many.slice(0, 20))
    expect(await added("X-One: 1", "X-One: 2", "X-Empty: ", "X-Two: 3")).toEqual(["X-One: 1", "X-Two: 3"])
    const value = (length: number) => "ab ".repeat(300).slice(0, length - 1) + "c"
    const lengths = async (length: number) => (await added(`X-Long: ${value(length)}`)).length
    expect([await lengths(900), await lengths(901)]).toEqual([1, 0])
  })

  it("include those of a mailing list and of the program that are valid", async () => {
    const list = "List-Unsubscribe: <https://x.example/u>"
    expect(await added(list, "Organization: Example")).toEqual([list, "Organization: Example"])
    expect(await added("List-Unsubscribe: <javascript:x>", "X-Bcc: eve@evil.example")).toEqual([])
  })
})

describe("The fingerprint of a submitted message", () => {
  const printed = async (fields: string, body = "x") =>
    Buffer.from((await kept(`Message-ID: <own@laptop>\r\n${fields}`, body)).fingerprint!).toString("hex")
  const file = (name: string, content: string) =>
    `--b\r\n\r\nx\r\n--b\r\nContent-Type: application/pdf; name=${name}\r\n\r\n${content}\r\n--b--\r\n`
  const mixed = "Content-Type: multipart/mixed; boundary=b"

  it("differs with everything that a reader sees", async () => {
    const prints = await Promise.all([
      printed("Subject: a"),
      printed("Subject: b"),
      printed("Subject: a\r\nIn-Reply-To: <q@x.example>"),
      printed("Subject: a\r\nContent-Type: text/html"),
      printed("Subject: a\r\nContent-Type: text/html", "<b>x</b>"),
      printed(mixed, file("a.pdf", "one")),
      printed(mixed, file("a.pdf", "two")),
      printed(mixed, file("b.pdf", "one")),
    ])
    expect(new Set(prints).size).toBe(prints.length)
    expect(await printed("Subject: a\r\nX-Other: 1")).toBe(prints[0])
  })
})
