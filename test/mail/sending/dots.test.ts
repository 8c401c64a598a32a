/** Dot stuffing of content, wherever the pieces are split. */
import { stuffed } from "@svc/mail-gateway/mail/sending/smtp/DotStuffing"
import fc from "fast-check"
import { expect, it } from "vitest"

const piece = 64 * 1024

const written = (parts: ReadonlyArray<string>) => {
  const pieces = [...stuffed(parts.map((part) => Buffer.from(part, "latin1")))].map((one) => Buffer.from(one))
  return { text: Buffer.concat(pieces).toString("latin1"), pieces: pieces.length }
}

const expected = (parts: ReadonlyArray<string>) => {
  const content = parts.join("")
  return `${content.replaceAll(/^\./gm, "..")}${content === "" || content.endsWith("\n") ? "" : "\r\n"}.\r\n`
}

it("Dot stuffing is independent of how the content is split", () => {
  const part = fc.array(fc.constantFrom(".", "..", "\r\n", "\r\n.", "word", "\r\n.\r\n"), { maxLength: 8 })
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
      const texts = parts.map((one) => one.join(""))
      expect(written(texts)).toEqual({ text: expected(texts), pieces: 1 })
    }),
    { numRuns: 1_000 },
  )
})

it("Large content is sent in pieces, and a dot at the start of a piece is not doubled by mistake", () => {
  for (const before of [piece - 3, piece - 2, piece - 1, piece, piece + 1]) {
    const texts = ["Signed: x\r\n", `${"a".repeat(before - 2)}\r\n.\r\n.b\r\n`.repeat(3)]
    const { text, pieces } = written(texts)
    expect(text).toBe(expected(texts))
    expect(pieces).toBeGreaterThan(2)
  }
})
