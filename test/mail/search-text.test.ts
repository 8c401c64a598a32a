import { fold } from "@svc/domain/mail/SearchText"
import { expect, it } from "vitest"

it("fold resolves stylised letters before lower case and removes invisible characters from words", () => {
  for (const [text, folded] of [
    ["𝗕𝗹𝗮𝗰𝗸 𝗙𝗿𝗶𝗱𝗮𝘆", "black friday"],
    ["Ⓑⓛⓐⓒⓚ ＦＲＩＤＡＹ", "black friday"],
    ["dona\u00adtion un\u200bsub\u200dscribe\ufeff", "donation unsubscribe"],
    ["\u202eab\u2066c\u2069", "abc"],
    ["a\u00a0 \u2003b\tc", "a b c"],
    ["İSTANBUL ΟΔΟΣ Straße Œuvre ❤\ufe0f", "istanbul οδοσ strasse oeuvre ❤"],
    ["한국어", "한국어"],
  ] as const) {
    expect(fold(text), text).toBe(folded)
    expect(fold(folded)).toBe(folded)
  }
  expect(fold("οδος")).toBe(fold("ΟΔΟΣ"))
})
