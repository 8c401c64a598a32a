/** Texts in ISO-2022 and HZ, byte by byte. */
import { charset } from "@svc/mail-gateway/mail/mime/Charset"
import * as Iso2022 from "@svc/mail-gateway/mail/mime/Iso2022"
import { describe, expect, it } from "vitest"

const unknown = "\ufffd"

describe("HZ", () => {
  it.each([
    ["plain", "plain"],
    ["~{VPND~}", "中文"],
    ["a~{VPND~}b~~c", "a中文b~c"],
    // A tilde joins lines, whatever ends them.
    ["a~\nb", "ab"],
    ["a~\r\nb", "ab"],
    ["a~\rb", "a~\rb"],
    // A line break ends the characters.
    ["~{VP\nND", "中\nND"],
    ["~{V", unknown],
    ["a~", "a~"],
    ["a~b", "a~b"],
    ["\u00e9", unknown],
  ])("%j is %j", (bytes, text) => expect(Iso2022.hz(Buffer.from(bytes, "latin1"))).toBe(text))
})

describe("ISO-2022", () => {
  it.each([
    ["\x1b$BF|K\\\x1b(B", "日本"],
    ["a\x1b$BF|\x1b(Bb", "a日b"],
    ["\x1b(J\\~a\x1b(B\\~", "¥‾a\\~"],
    ["\x1b(I1\x1b(B1", "ｱ1"],
    ["\x1b(I\x60", unknown],
    // Every line starts in ASCII.
    ["\x1b$BF|\nF|", "日\nF|"],
    ["\x1b(J\\\n\\", "¥\n\\"],
    ["\x1b$BF", unknown],
    ["\xe9", unknown],
    ["\x1b$)C\x0e0!\x0fa", "가a"],
    ["\x0e0!\x0f", "가"],
    // JIS X 0212, whose characters have a third byte in EUC.
    ["\x1b$(D0!\x1b(B", "丂"],
  ])("%j is %j", (bytes, text) => expect(Iso2022.iso2022(Buffer.from(bytes, "latin1"))).toBe(text))
})

describe("UTF-7", () => {
  it("is decoded up to 64 KiB, since its decoder takes more than linear time", () => {
    for (const name of ["utf-7", "utf-7-imap"])
      expect(charset(Buffer.alloc(100_000, "a"), name)).toHaveLength(64 * 1024)
    expect(charset(Buffer.alloc(100_000, "a"), "iso-8859-1")).toHaveLength(100_000)
  })
})
