/** Rendered letters are identical to the library's streamed output, for any content. */
import { render } from "@svc/mail-gateway/mail/composing/MimeRenderer"
import fc from "fast-check"
import MailComposer from "nodemailer/lib/mail-composer"
import { describe, expect, it } from "vitest"

type Mail = NonNullable<ConstructorParameters<typeof MailComposer>[0]>

/** Options as the `MimeRenderer` gets them; both renderers use the same random boundaries. */
const composed = (mail: Mail) =>
  new MailComposer({
    from: { address: "ada@mail.localhost", name: "Ada" },
    to: [{ address: "grace@example.org", name: "Grace Ü" }],
    date: new Date("2026-11-20T12:00:00.000Z"),
    messageId: "<1@mail.localhost>",
    textEncoding: "quoted-printable",
    newline: "windows",
    baseBoundary: "drawn",
    disableFileAccess: true,
    disableUrlAccess: true,
    ...mail,
  }).compile()

/** Positions of line folds, which differ because streams split before trailing white space. */
const unwrapped = (text: string) => text.replaceAll("=\r\n", "")

const same = async (mail: () => Mail) => {
  const ours = render(composed(mail())).toString("latin1")
  const theirs = await composed(mail()).build()
  expect(unwrapped(ours)).toBe(unwrapped(theirs.toString("latin1")))
  expect(/(?:^|[^\r])\n|\r(?!\n)/.test(ours)).toBe(false)
  const [, ...bodies] = ours.split("\r\n\r\n")
  expect(bodies.flatMap((body) => body.split("\r\n")).filter((line) => line.length > 76)).toEqual([])
}

const words = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "\n",
        "\r\n",
        "\n\n",
        " ",
        "  \n",
        "\t",
        "=",
        ".",
        "--",
        "é",
        "日本",
        "😀",
        "long ".repeat(30),
        "x".repeat(200),
      ),
      fc.string({ unit: "grapheme", maxLength: 30 }),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join("").replaceAll(/\r(?!\n)/g, ""))

const file = fc.record({
  filename: fc.constantFrom<string | false>("report.pdf", "Übersicht.txt", false),
  content: fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
  contentType: fc.constantFrom("application/pdf", "image/png", "application/octet-stream"),
  cid: fc.constantFrom(undefined, "picture"),
})

describe("a rendered letter", () => {
  it("equals the library's output for text, HTML and attachments", async () => {
    await fc.assert(
      fc.asyncProperty(words, words, fc.array(file, { maxLength: 3 }), words, async (text, html, files, subject) => {
        await same(() => ({
          subject: subject.slice(0, 200),
          text,
          html,
          attachments: files.map(({ cid, ...one }) => ({
            ...one,
            contentDisposition: cid === undefined ? ("attachment" as const) : ("inline" as const),
            ...(cid === undefined ? {} : { cid }),
          })),
        }))
      }),
      { numRuns: 200 },
    )
  })

  it("equals the library's output for text attachments and any line ends", async () => {
    for (const end of ["", "\n", "\r\n", " ", "\t\n", "é", "="]) {
      const content = Buffer.from(`first line\nsecond${end}`)
      await same(() => ({
        text: `words${end}`,
        attachments: [{ filename: "a.csv", contentType: "text/csv", content }],
      }))
      await same(() => ({ text: `words${end}` }))
      await same(() => ({ html: `<p>words</p>${end}` }))
    }
  })

  it("equals the library's output for sizes around the base64 chunk size", async () => {
    const piece = 57 * 1024
    for (const size of [0, 1, 56, 57, 58, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 5]) {
      const content = Buffer.alloc(size, "picture")
      await same(() => ({ text: "See it.", attachments: [{ filename: "a.png", contentType: "image/png", content }] }))
    }
    const long = "Ein langer Brief, über vieles, mit vielen Wörtern.\n".repeat(4_000)
    await same(() => ({ text: long, html: `<p>${long}</p>` }))
  })
})
