/** Message ids in any spelling that programs write, from the field that holds them to the fields of an answer. */
import { write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { describe, expect, it } from "vitest"

const mail = (text: string) => parse(Buffer.from(text, "latin1"))

describe("message ids", () => {
  const quoted = '<"quoted id"@example.org>'
  const letter = mail(
    `Message-ID: ${quoted}\r\nIn-Reply-To: <"a@b"@c>\r\nReferences: <one@x> ${quoted}\r\n <"lone@x>\r\n\r\n`,
  )

  it("may be quoted strings, spaces in them included", () => {
    expect(letter).toMatchObject({ message_id: quoted, in_reply_to: '<"a@b"@c>' })
    expect(letter.references).toEqual(["<one@x>", quoted, '<"lone@x>'])
    expect(mail("Message-ID: <not quoted@x>\r\n\r\n").message_id).toBe(null)
  })
  it("are written into the fields of an answer as they are", async () => {
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
      disclosure: "An AI wrote this.",
      language: "en",
    })
    if (written._tag !== "Composed") throw new Error(JSON.stringify(written))
    const read = parse(Buffer.from(written.composed.content.raw))
    expect(read).toMatchObject({ in_reply_to: quoted, references: ["<one@x>", quoted] })
  })
  it("made to stall are read in no time", () => {
    for (const piece of ["<", '<"', '"', '<""', '<"a" ', "<a"]) {
      expect(mail(`References: ${piece.repeat(30_000)}>\r\n\r\n`).references.length).toBeLessThanOrEqual(100)
    }
  })
})
