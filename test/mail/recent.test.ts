/** The cache of SPF and DMARC results in a verdict worker. */
import * as RecentVerdicts from "@svc/mail-gateway/mail/judging/RecentVerdicts"
import { Timing } from "@svc/mail-gateway/Timing"
import { fold } from "@svc/domain/mail/SearchText"
import { expect, it } from "@effect/vitest"

const asking = (...results: ReadonlyArray<string>) => {
  const remaining = [...results]
  return { ask: async () => ({ result: remaining.shift()! }), left: remaining }
}

it("results of a sender are cached briefly, and separately from other senders", async () => {
  let now = 0
  const recent = RecentVerdicts.make(() => now)
  const { ask } = asking("pass", "fail", "none")
  expect(await recent.evaluate(["spf", "192.0.2.1", "a"], ask)).toEqual({ result: "pass" })
  expect(await recent.evaluate(["spf", "192.0.2.1", "a"], ask)).toEqual({ result: "pass" })
  expect(await recent.evaluate(["spf", "192.0.2.2", "a"], ask)).toEqual({ result: "fail" })
  now = Timing.judgingAnswersMillis
  expect(await recent.evaluate(["spf", "192.0.2.1", "a"], ask)).toEqual({ result: "none" })
})

it("DNS failures are not cached, and pending evaluations are not shared", async () => {
  const recent = RecentVerdicts.make()
  const { ask } = asking("temperror", "pass")
  expect(await recent.evaluate(["spf", "a"], ask)).toEqual({ result: "temperror" })
  expect(await recent.evaluate(["spf", "a"], ask)).toEqual({ result: "pass" })
  const never = new Promise<never>(() => {})
  void recent.evaluate(["spf", "b"], () => never)
  expect(await recent.evaluate(["spf", "b"], asking("none").ask)).toEqual({ result: "none" })
})

it("folding removes invisible characters and turns every run of separators into one space", () => {
  const each = (text: string) =>
    text
      .replace(/[\u200b\ufeff\u00ad]+/g, "")
      // oxlint-disable-next-line no-control-regex -- separators
      .replace(/[\s\x00-\x1f\x7f]+/g, " ")
      .trim()
  const parts = ["a", " ", "  ", "\n", "\r\n", "\t", "\x00", "\x1e", "\u200b", "\u00ad", "\u00a0", "\u3000", "b"]
  for (const one of parts) {
    for (const two of parts) {
      for (const three of parts) {
        const text = `x${one}${two}${three}y${three}`
        // Folding has no other effect on these characters, except that wide spaces become plain ones.
        expect(fold(text)).toBe(each(text))
      }
    }
  }
})
