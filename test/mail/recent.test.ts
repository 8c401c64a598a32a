/** What a judging thread keeps of what SPF and DMARC said. */
import * as RecentVerdicts from "@svc/mail-gateway/mail/judging/RecentVerdicts"
import { Timing } from "@svc/mail-gateway/Timing"
import { fold } from "@svc/domain/mail/SearchText"
import { expect, it } from "@effect/vitest"

const asking = (...results: ReadonlyArray<string>) => {
  const left = [...results]
  return { ask: async () => ({ result: left.shift()! }), left }
}

it("what was said of a sender is not asked again for a moment, of another it is", async () => {
  let now = 0
  const recent = RecentVerdicts.make(() => now)
  const { ask } = asking("pass", "fail", "none")
  expect(await recent.evaluate(["spf", "192.0.2.1", "a"], ask)).toEqual({ result: "pass" })
  expect(await recent.evaluate(["spf", "192.0.2.1", "a"], ask)).toEqual({ result: "pass" })
  expect(await recent.evaluate(["spf", "192.0.2.2", "a"], ask)).toEqual({ result: "fail" })
  now = Timing.judgingAnswersMillis
  expect(await recent.evaluate(["spf", "192.0.2.1", "a"], ask)).toEqual({ result: "none" })
})

it("that DNS did not answer is asked again, and nobody waits for another's question", async () => {
  const recent = RecentVerdicts.make()
  const { ask } = asking("temperror", "pass")
  expect(await recent.evaluate(["spf", "a"], ask)).toEqual({ result: "temperror" })
  expect(await recent.evaluate(["spf", "a"], ask)).toEqual({ result: "pass" })
  const never = new Promise<never>(() => {})
  void recent.evaluate(["spf", "b"], () => never)
  expect(await recent.evaluate(["spf", "b"], asking("none").ask)).toEqual({ result: "none" })
})

it("each run of what separates words is one space where text is folded", () => {
  // oxlint-disable-next-line no-control-regex -- what separates words
  const each = (text: string) => text.replace(/[\s\x00-\x1f\x7f\u200b\ufeff\u00ad]+/g, " ").trim()
  const parts = ["a", " ", "  ", "\n", "\r\n", "\t", "\x00", "\x1e", "\u200b", "\u00ad", "\u00a0", "\u3000", "b"]
  for (const one of parts) {
    for (const two of parts) {
      for (const three of parts) {
        const text = `x${one}${two}${three}y${three}`
        // What folding does besides says nothing of these but for the wide spaces, which it makes plain ones.
        expect(fold(text)).toBe(each(text))
      }
    }
  }
})
