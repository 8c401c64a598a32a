/** Content on its way to a server: a dot more where a line begins with one, and an end, wherever the pieces are cut. */
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

it("has its dots, whatever the parts are", () => {
  const part = fc.array(fc.constantFrom(".", "..", "\r\n", "\r\n.", "word", "\r\n.\r\n"), { maxLength: 8 })
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
      const texts = parts.map((one) => one.join(""))
      expect(written(texts)).toEqual({ text: expected(texts), pieces: 1 })
    }),
    { numRuns: 1_000 },
  )
})

it("goes in pieces where it is large, and a dot at the beginning of one is one", () => {
  for (const before of [piece - 3, piece - 2, piece - 1, piece, piece + 1]) {
    const texts = ["Signed: x\r\n", `${"a".repeat(before - 2)}\r\n.\r\n.b\r\n`.repeat(3)]
    const { text, pieces } = written(texts)
    expect(text).toBe(expected(texts))
    expect(pieces).toBeGreaterThan(2)
  }
})
