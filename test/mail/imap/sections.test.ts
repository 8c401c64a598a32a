/** The bytes that a section of FETCH names (RFC 9051 section 6.4.5.1), and the folders that a pattern of LIST names. */
import { matcher } from "@svc/mail-gateway/mail/imap/protocol/MailboxName"
import type { Section } from "@svc/mail-gateway/mail/imap/protocol/FetchItems"
import * as Sections from "@svc/mail-gateway/mail/imap/session/Sections"
import * as Structure from "@svc/mail-gateway/mail/mime/Structure"
import { describe, expect, it } from "vitest"

const section = (raw: string, part: ReadonlyArray<number>, what: Section["what"]) => {
  const bytes = Buffer.from(raw)
  const span = Sections.spanOf(Structure.make(bytes), bytes.length, { part, what, fields: [] })
  return span === undefined ? undefined : raw.slice(span.from, span.to)
}

describe("A section", () => {
  const head = "Subject: s\r\nFrom: a@x.example\r\n\r\n"

  it("of a message without parts is the message, its header or its body", () => {
    const raw = `${head}body\r\n`
    expect([[], [1], [2]].map((part) => section(raw, part, "all"))).toEqual([raw, "body\r\n", undefined])
    expect(section(raw, [], "HEADER")).toBe(head)
    expect(section(raw, [], "TEXT")).toBe("body\r\n")
    expect(section(raw, [1], "MIME")).toBe(head)
  })

  it("of a multipart is the part or its header", () => {
    const parts = ["Content-Type: text/plain\r\n\r\none", "Content-Type: text/html\r\n\r\n<p>two</p>"]
    const body = `--b\r\n${parts.join("\r\n--b\r\n")}\r\n--b--\r\n`
    const raw = `Content-Type: multipart/alternative; boundary=b\r\n${head}${body}`
    expect([[1], [2], [3]].map((part) => section(raw, part, "all"))).toEqual(["one", "<p>two</p>", undefined])
    expect(section(raw, [2], "MIME")).toBe("Content-Type: text/html\r\n\r\n")
  })

  it("of header fields has the named fields, or all others", () => {
    const fields = (what: "HEADER.FIELDS" | "HEADER.FIELDS.NOT") =>
      Sections.fieldsOf(Buffer.from(head), { part: [], what, fields: ["subject"] }).toString()
    expect(fields("HEADER.FIELDS")).toBe("Subject: s\r\n\r\n")
    expect(fields("HEADER.FIELDS.NOT")).toBe("From: a@x.example\r\n\r\n")
  })
})

it.each([
  ["*", ["INBOX", "a", "a/b", "a/b/c"]],
  ["%", ["INBOX", "a"]],
  ["a/%", ["a/b"]],
  ["%/%", ["a/b"]],
  ["a*c", ["a/b/c"]],
  ["inbox", ["INBOX"]],
  ["b", []],
])("The pattern %s names %j", (pattern, names) => {
  expect(["INBOX", "a", "a/b", "a/b/c"].filter(matcher(pattern))).toEqual(names)
})
