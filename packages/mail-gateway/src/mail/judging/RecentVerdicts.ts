/**
 * What SPF and DMARC said of a sender, kept for a moment: a burst of one sender's messages asks the same of the same answers
 * of DNS. Only what was said is shared, never the wait for it; that DNS did not answer is not kept.
 */
import { Timing } from "../../Timing.ts"

/** What is known of more than so many is forgotten at once. */
const names = 1_000

export interface RecentVerdicts {
  /** What `ask` said of this question lately, else what it says now. */
  readonly said: <A extends { readonly result: string }>(
    question: ReadonlyArray<unknown>,
    ask: () => Promise<A>,
  ) => Promise<A>
}

export const make = (now: () => number = () => performance.now()): RecentVerdicts => {
  const known = new Map<string, { readonly until: number; readonly answer: unknown }>()
  return {
    said: async <A extends { readonly result: string }>(question: ReadonlyArray<unknown>, ask: () => Promise<A>) => {
      const key = JSON.stringify(question)
      const before = known.get(key)
      // The question begins with what is asked, so the answer is of its kind.
      if (before !== undefined && before.until > now()) return before.answer as A
      const answer = await ask()
      if (answer.result !== "temperror") {
        if (known.size >= names) known.clear()
        known.set(key, { until: now() + Timing.judgingAnswersMillis, answer })
      }
      return answer
    },
  }
}
