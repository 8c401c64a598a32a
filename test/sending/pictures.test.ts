/** Inline images of messages sent by the API: their place in the message, and which of them are attachments. */
import type { Letter } from "@svc/cluster/mail/sending/Composer"
import type { NewMail, OutgoingAttachment } from "@svc/domain/mail/Sending"
import { OutgoingAttachment as Attachment } from "@svc/domain/mail/Sending"
import * as DraftMessage from "@svc/mail-gateway/mail/composing/DraftMessage"
import { write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import { index, type Part } from "@svc/mail-gateway/mail/mime/Part"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"

const picture = (content_id: string, more: Partial<OutgoingAttachment> = {}): OutgoingAttachment => ({
  filename: "dot.png",
  content_type: "image/png",
  content_base64: "UE5H",
  content_id,
  ...more,
})

const written = (html: string, attachments: ReadonlyArray<OutgoingAttachment>) => {
  const letter: Letter = {
    messageId: "<1@mail.localhost>",
    date: new Date("2026-11-20T12:00:00.000Z"),
    from: { address: "ada@mail.localhost", name: null },
    to: ["grace@example.org"],
    cc: [],
    subject: "Hello",
    text: undefined,
    html,
    inReplyTo: null,
    references: [],
    attachments,
    headers: {},
    did: "did:web:mail.example:%40ada",
    disclosure: "An AI wrote this.",
    language: "en",
  }
  return write(letter)
}

const sent = async (html: string, attachments: ReadonlyArray<OutgoingAttachment>) => {
  const outcome = await written(html, attachments)
  if (outcome._tag !== "Composed") throw new Error(JSON.stringify(outcome))
  return outcome.composed
}

/** Returns `type disposition` of each part and its parent. */
const structure = (raw: Uint8Array): ReadonlyArray<string> => {
  const lines: Array<string> = []
  const walk = (part: Part, depth: number) => {
    lines.push(`${" ".repeat(depth)}${part.type} ${part.disposition ?? ""}`.trimEnd())
    for (const child of part.parts) walk(child, depth + 1)
  }
  walk(index(Buffer.from(raw)), 0)
  return lines
}

const fault = async (...attachments: ReadonlyArray<OutgoingAttachment>) => {
  const outcome = await written("<p>x</p>", attachments)
  return outcome._tag === "Faulty" ? outcome.path : outcome._tag
}

describe("an image referenced by the HTML", () => {
  it("is a related part and not an attachment", async () => {
    const { content, attachments } = await sent('<p>See <img src="cid:dot@ada" alt="dot"> and CID of no case</p>', [
      picture("dot@ada"),
      { filename: "a.csv", content_type: "text/csv", content_base64: "MSwy" },
    ])
    expect(content.html).toContain('<img src="cid:dot@ada" alt="dot">')
    expect(Buffer.from(content.raw).toString("latin1")).toContain("\r\nContent-ID: <dot@ada>\r\n")
    expect(structure(content.raw)).toEqual([
      "multipart/mixed",
      " multipart/alternative",
      "  text/plain",
      "  multipart/related",
      "   text/html",
      "   image/png inline",
      " text/csv attachment",
    ])
    expect(attachments.map(({ filename }) => filename)).toEqual(["dot.png", "a.csv"])
  })

  it("is an attachment if the HTML does not reference it, and a missing image shows nothing", async () => {
    const { content } = await sent('<p>a<img src="cid:other" alt="gone"></p>', [picture("dot")])
    expect(content.html).toContain('<p>a<img alt="gone"></p>')
    expect(content.html).not.toContain("cid:")
    expect(structure(content.raw)).toEqual([
      "multipart/mixed",
      " multipart/alternative",
      "  text/plain",
      "  text/html",
      " image/png attachment",
    ])
  })

  it("must have a unique id and be an image", async () => {
    expect(await fault(picture("dot"), picture("dot"))).toBe("/attachments/1/content_id")
    expect(await fault(picture("page", { content_type: "text/html" }))).toBe("/attachments/0/content_id")
    expect(await fault(picture("a"), picture("b"))).toBe("Composed")
  })

  it("has an id that is valid in a header field and in an HTML attribute", () => {
    const is = Schema.is(Attachment)
    for (const id of ["dot", "ii_1@mail.example", "a.b-c_d%20e"]) expect([id, is(picture(id))]).toEqual([id, true])
    for (const id of ["", "<dot>", "a b", "a\r\nBcc: x@y.z", 'a"b', "a>b", "ü", "a@b@c", "a".repeat(121)]) {
      expect([id, is(picture(id))]).toEqual([id, false])
    }
  })
})

describe("a draft with an inline image", () => {
  const draft: NewMail = {
    to: ["grace@example.org"],
    html: '<p><img src="cid:dot@ada"></p>',
    attachments: [picture("dot@ada"), picture("unseen", { filename: "other.png" })],
  }
  const shown = (mail: NewMail) =>
    DraftMessage.write({
      mail,
      from: "ada@mail.localhost",
      at: new Date("2026-11-20T12:00:00.000Z"),
      messageId: "<d@mail.localhost>",
    })

  it("is shown with the image in mail clients and read back from them", async () => {
    const raw = await shown(draft)
    expect(structure(raw).filter((line) => line.includes("image/png"))).toEqual([
      "  image/png inline",
      " image/png attachment",
    ])
    expect(DraftMessage.read(raw)?.attachments).toEqual([
      picture("dot@ada"),
      { filename: "other.png", content_type: "image/png", content_base64: "UE5H" },
    ])
  })

  it("is not an API draft if the image is missing", async () => {
    expect(DraftMessage.read(await shown({ ...draft, attachments: [] }))).toBeUndefined()
  })
})
