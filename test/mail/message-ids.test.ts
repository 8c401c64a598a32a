/** Message ids in every spelling that programs use, from the received field to the fields of a reply. */
import { write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { describe, expect, it } from "vitest"

const mail = (text: string) => parse(Buffer.from(text, "latin1"))

describe("Message ids", () => {
  const quoted = '<"quoted id"@example.org>'
  const letter = mail(
    `Message-ID: ${quoted}\r\nIn-Reply-To: <"a@b"@c>\r\nReferences: <one@x> ${quoted}\r\n <"lone@x>\r\n\r\n`,
  )

  it("may be quoted strings that contain spaces", () => {
    expect(letter).toMatchObject({ message_id: quoted, in_reply_to: '<"a@b"@c>' })
    expect(letter.references).toEqual(["<one@x>", quoted, '<"lone@x>'])
    expect(mail("Message-ID: <not quoted@x>\r\n\r\n").message_id).toBe(null)
  })
  it("are copied unchanged into the fields of a reply", async () => {
    const written = await write({
      messageId: "<1@mail.localhost>",
      date: new Date("2026-11-20T12:00:00.000Z"),
      from: { address: "ada@mail.localhost", name: null },
      to: ["grace@example.org"],
      cc: [],
      subject: "Re: Hello",
      text: "Yes.",
      html: undefined,
      inReplyTo: quoted,
      references: ["<one@x>", quoted],
      attachments: [],
      headers: {},
      did: "did:web:mail.example:%40ada",
      disclosure: "An AI wrote this.",
      language: "en",
    })
    if (written._tag !== "Composed") throw new Error(JSON.stringify(written))
    const read = parse(Buffer.from(written.composed.content.raw))
    expect(read).toMatchObject({ in_reply_to: quoted, references: ["<one@x>", quoted] })
  })
  it("crafted to be slow are parsed quickly", () => {
    for (const piece of ["<", '<"', '"', '<""', '<"a" ', "<a"]) {
      expect(mail(`References: ${piece.repeat(30_000)}>\r\n\r\n`).references.length).toBeLessThanOrEqual(100)
    }
  })
})
