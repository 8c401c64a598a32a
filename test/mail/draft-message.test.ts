/** Drafts as messages in mail programs, and messages of programs as drafts. */
import type { NewMail } from "@svc/domain/mail/Sending"
import * as DraftMessage from "@svc/mail-gateway/mail/composing/DraftMessage"
import { describe, expect, it } from "vitest"

const base64 = (text: string) => Buffer.from(text).toString("base64")
const base = { to: [], cc: [], bcc: [], subject: "" }
const picture = async (mail: NewMail) =>
  DraftMessage.write({ mail, from: "ada@mail.example", at: new Date(0), messageId: "<d@mail.example>" })
const png = { filename: "a.png", content_type: "image/png", content_base64: base64("png") }

describe("A draft", () => {
  // A body that is the whole message ends its last line.
  it.each<readonly [string, object, object?]>([
    ["nothing", {}, { text: "" }],
    ["its recipients", { to: ["g@x.example", "h@x.example"], cc: ["i@x.example"], bcc: ["j@x.example"], text: "t\n" }],
    ["a subject and its thread", { subject: "é", text: "t\n", in_reply_to: "<1@x>", references: ["<0@x>", "<1@x>"] }],
    ["HTML alone", { html: "<p>h</p>\n" }],
    ["both bodies", { text: "t", html: "<p>h</p>" }],
    [
      "an attachment",
      { text: "t", attachments: [{ ...png, content_id: undefined }] },
      { text: "t", attachments: [png] },
    ],
    ["an image that the HTML shows", { html: '<img src="cid:i@x">', attachments: [{ ...png, content_id: "i@x" }] }],
    [
      "an attachment that the HTML does not show",
      { html: "<p>h</p>", attachments: [{ ...png, content_id: "i@x" }] },
      { html: "<p>h</p>", attachments: [png] },
    ],
    [
      "a message as an attachment, which would be one of the draft's own parts",
      { text: "t", attachments: [{ ...png, content_type: "message/rfc822" }] },
      { text: "t", attachments: [{ ...png, content_type: "application/octet-stream" }] },
    ],
  ])("with %s is the same after a program has stored it", async (_, mail, read = mail) => {
    const message = await picture(mail as NewMail)
    expect(DraftMessage.read(message)).toEqual(Object.assign({}, base, read))
  })

  it("is written with the time of its change, its id and its additional fields", async () => {
    const head = (await picture({ text: "t", headers: { "X-Own": "1" } } as NewMail))
      .toString("latin1")
      .split("\r\n\r\n")[0]!
    const fields = head.split("\r\n")
    for (const field of [
      "From: ada@mail.example",
      "Message-ID: <d@mail.example>",
      "Date: Thu, 01 Jan 1970 00:00:00 +0000",
      "X-Own: 1",
    ]) {
      expect(fields).toContain(field)
    }
  })
})

describe("A message of a program", () => {
  const letter = (type: string, body: string, more = "", subject = "s") =>
    Buffer.from(`From: a@x.example\r\nSubject: ${subject}\r\n${more}Content-Type: ${type}\r\n\r\n${body}`)
  const mixed = (...parts: ReadonlyArray<string>) =>
    letter("multipart/mixed; boundary=b", `${parts.map((part) => `--b\r\n${part}\r\n`).join("")}--b--\r\n`)

  it.each([
    ["signed", letter("multipart/signed; boundary=b", "--b\r\n\r\nx\r\n--b--\r\n")],
    ["encrypted", letter("multipart/encrypted; boundary=b", "--b\r\n\r\nx\r\n--b--\r\n")],
    ["with a message in it", mixed("\r\nt", "Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\ny")],
    ["with a report in it", mixed("\r\nt", "Content-Type: message/delivery-status\r\n\r\nx: y")],
    ["whose HTML shows a missing image", letter("text/html", '<img src="cid:missing@x">')],
    ["that is too large", Buffer.concat([letter("text/plain", ""), Buffer.alloc(7 * 1024 * 1024, "x")])],
    ["with a file that is too large", mixed("\r\nt", `Content-Type: image/png\r\n\r\n${"x".repeat(7 * 1024 * 1024)}`)],
    ["whose subject is too long", letter("text/plain", "t", "", "s".repeat(1_000))],
  ])("%s is no draft, since something would be lost", (_, message) =>
    expect(DraftMessage.read(message)).toBeUndefined(),
  )

  it("keeps only ids that may be sent, and names attachments without a name", () => {
    const thread = "In-Reply-To: <no id>\r\nReferences: <1@x.example> bad <2@x.example>\r\n"
    expect(DraftMessage.read(letter("text/plain", "t", thread))).toEqual({
      ...base,
      subject: "s",
      text: "t",
      references: ["<1@x.example>", "<2@x.example>"],
    })
    expect(
      DraftMessage.read(mixed("\r\nt", "Content-Type: application/pdf\r\nContent-Disposition: attachment\r\n\r\nx")),
    ).toMatchObject({
      attachments: [{ filename: "attachment-1", content_type: "application/pdf", content_base64: base64("x") }],
    })
    // A text that is an attachment is not the body.
    expect(
      DraftMessage.read(letter("text/plain\r\nContent-Disposition: attachment; filename=a.txt", "t")),
    ).toMatchObject({ attachments: [{ filename: "a.txt" }] })
    // Nor does it become the text of a message that has HTML only.
    const withFile = mixed("Content-Type: text/html\r\n\r\n<p>h</p>", "Content-Disposition: attachment\r\n\r\nt")
    expect(DraftMessage.read(withFile)).not.toHaveProperty("text")
  })

  it("shows the first of two images with one id, and has names and ids that can be stored", () => {
    const image = "Content-Type: image/png\r\nContent-ID: <i@x>\r\n"
    const named = (name: string) => `${image}Content-Disposition: attachment; filename*=utf-8''${name}\r\n\r\nx`
    const both = mixed('Content-Type: text/html\r\n\r\n<img src="cid:i@x">', named("a%00.png"), named("b.png"))
    expect(DraftMessage.read(both)?.attachments).toEqual([
      { filename: "a.png", content_type: "image/png", content_base64: base64("x"), content_id: "i@x" },
      { filename: "b.png", content_type: "image/png", content_base64: base64("x") },
    ])
    const thread = "In-Reply-To: <without-at>\r\nReferences: <without-at> <2@x.example>\r\n"
    expect(DraftMessage.read(letter("text/plain", "t", thread))).toEqual({
      ...base,
      subject: "s",
      text: "t",
      references: ["<2@x.example>"],
    })
  })
})
