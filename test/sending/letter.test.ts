/** Messages that callers of the API write: fields, files, hash and refusals. */
import { createHash } from "node:crypto"
import type { Letter } from "@svc/cluster/mail/sending/Composer"
import { typeOf, write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import { describe, expect, it } from "vitest"

const letter = (more: Partial<Letter>): Letter => ({
  messageId: "<1@mail.localhost>",
  date: new Date("2026-11-20T12:00:00.000Z"),
  from: { address: "ada@mail.localhost", name: null },
  to: ["grace@example.org"],
  cc: ["alan@example.org"],
  subject: "Hello",
  text: "Hello.",
  html: undefined,
  inReplyTo: null,
  references: [],
  attachments: [],
  headers: {},
  did: "did:web:mail.example:%40ada",
  disclosure: "An AI wrote this message.",
  language: "en",
  ...more,
})

const written = async (more: Partial<Letter>) => {
  const outcome = await write(letter(more))
  if (outcome._tag !== "Composed") throw new Error(JSON.stringify(outcome))
  const raw = Buffer.from(outcome.composed.content.raw)
  return { ...outcome.composed, raw, head: raw.toString("latin1").split("\r\n\r\n")[0]!.split("\r\n") }
}

const file = (content_base64: string, content_type = "application/pdf", filename = "a.pdf") => ({
  filename,
  content_type,
  content_base64,
})

describe("A letter", () => {
  it("has its recipients, and the fields that only the service sets, whatever its own fields say", async () => {
    const { head } = await written({
      headers: { "X-Own": "1", "Auto-Submitted": "no", "AI-Disclosure": "none", "Agent-Identity": "did:web:evil" },
    })
    expect(head).toEqual(
      expect.arrayContaining([
        "To: grace@example.org",
        "Cc: alan@example.org",
        "X-Own: 1",
        "Auto-Submitted: auto-generated",
        "AI-Disclosure: mode=ai-originated",
        "Agent-Identity: did:web:mail.example:%40ada",
        "Content-Language: en",
      ]),
    )
    expect(head.filter((line) => /^(?:Reply-To|Auto-Submitted|AI-Disclosure|Agent-Identity):/.test(line))).toHaveLength(
      3,
    )
  })

  it("has a hash of exactly what is sent", async () => {
    const { raw, sha256 } = await written({})
    expect(Buffer.from(sha256)).toEqual(createHash("sha256").update(raw).digest())
  })

  it("has a text without pages of white space if only its HTML was written", async () => {
    const { content } = await written({ text: undefined, html: `<p>one</p>${"<br>".repeat(100)}<p>two</p>` })
    expect(content.text).toMatch(/^one\n{2,10}two\n/)
  })

  it("has its disclosure between its words and its signature", async () => {
    const { content } = await written({ text: "Hello.\n\n\n-- \nAda" })
    expect(content.text).toBe("Hello.\n\n---\nAn AI wrote this message.\n\n-- \nAda\n")
  })

  it("has at most 25 MiB", async () => {
    const zeros = Buffer.alloc(19 * 1024 * 1024).toString("base64")
    const outcome = await write(letter({ attachments: [file(zeros)] }))
    expect(outcome).toEqual({ _tag: "TooLarge", bytes: expect.any(Number) })
  })
})

describe("A file of a letter", () => {
  it("is valid base64", async () => {
    for (const valid of ["", "AA==", "AA", "AAA=", "AAAA"]) await written({ attachments: [file(valid)] })
    for (const invalid of ["A", "AAAAA", "AA!A", "AA A"]) {
      expect(await write(letter({ attachments: [file("AAAA"), file(invalid)] })), invalid).toMatchObject({
        _tag: "Faulty",
        path: "/attachments/1/content_base64",
      })
    }
  })

  it("has a name without folders and a type in lower case, and is no message", async () => {
    const { attachments } = await written({ attachments: [file("AAAA", "Application/PDF", "../a\\b.pdf")] })
    expect(attachments).toMatchObject([{ filename: ".._a_b.pdf", content_type: "application/pdf" }])
    expect(["Message/RFC822", "MULTIPART/mixed", "Image/PNG"].map(typeOf)).toEqual([
      "application/octet-stream",
      "application/octet-stream",
      "image/png",
    ])
  })
})
