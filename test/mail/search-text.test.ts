import { fold, searchText } from "@svc/domain/mail/SearchText"
import { expect, it } from "vitest"

it("fold resolves stylised letters before lower case and removes invisible characters from words", () => {
  for (const [text, folded] of [
    ["𝗕𝗹𝗮𝗰𝗸 𝗙𝗿𝗶𝗱𝗮𝘆", "black friday"],
    ["Ⓑⓛⓐⓒⓚ ＦＲＩＤＡＹ", "black friday"],
    ["dona\u00adtion un\u200bsub\u200dscribe\ufeff", "donation unsubscribe"],
    ["\u202eab\u2066c\u2069", "abc"],
    ["a\u00a0 \u2003b\tc", "a b c"],
    ["İSTANBUL ΟΔΟΣ Straße Œuvre ❤\ufe0f", "istanbul οδοσ strasse oeuvre ❤"],
    ["ßæœøđðłıþς ÆŒØĐÐŁÞ", "ssaeoeoddlithσ aeoeoddlth"],
    ["한국어", "한국어"],
  ] as const) {
    expect(fold(text), text).toBe(folded)
    expect(fold(folded)).toBe(folded)
  }
  expect(fold("οδος")).toBe(fold("ΟΔΟΣ"))
})

const empty = { from: null, to: [], cc: [], bcc: [], subject: "", attachments: [] }

it("the text of a message has its five parts, folded", () => {
  const person = (address: string, name: string | null = null) => ({ address, name })
  const message = {
    from: person("A@x.example", "Ada"),
    to: [person("b@x.example"), person("c@x.example", "Carl")],
    cc: [person("d@x.example")],
    bcc: [person("e@x.example")],
    subject: " Über ",
    attachments: [{ filename: "A.pdf" }, { filename: null }],
  }
  expect(searchText(message, ["One", "Two"]).split("\x1e")).toEqual([
    "ada a@x.example",
    "b@x.example carl c@x.example d@x.example e@x.example",
    "uber",
    "a.pdf",
    "one two",
  ])
  expect(searchText(empty, ["a\ud800b\x1ec"])).toBe("\x1e\x1e\x1e\x1ea\ufffdb c")
})

it("the text of a message has at most 1 MiB, and ends with a whole character", () => {
  const limit = 1024 * 1024
  const inBytes = (body: string, subject = "") => Buffer.byteLength(searchText({ ...empty, subject }, [body]))
  expect([limit - 5, limit - 4, limit - 3].map((length) => inBytes("a".repeat(length)))).toEqual([
    limit - 1,
    limit,
    limit,
  ])
  const cyrillic = "ж".repeat(limit / 2)
  expect([inBytes(cyrillic), inBytes(cyrillic, "a")]).toEqual([limit, limit - 1])
})
