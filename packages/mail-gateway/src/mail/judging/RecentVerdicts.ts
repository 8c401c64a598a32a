/**
 * A short-lived cache of SPF and DMARC results, since a burst of messages from one sender repeats the same evaluation.
 * Only finished results are shared, and temporary DNS errors are not cached.
 */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Timing } from "../../Timing.ts"

/** The maximum number of cached results. */
const capacity = 1_000

export interface RecentVerdicts {
  /** Returns the cached result of `question`, or evaluates it with `ask`. */
  readonly evaluate: <A extends { readonly result: string }>(
    question: ReadonlyArray<unknown>,
    ask: () => Promise<A>,
  ) => Promise<A>
}

export const make = (now: () => number = () => performance.now()): RecentVerdicts => {
  const known = new BoundedMap<string, { readonly until: number; readonly answer: unknown }>(capacity)
  return {
    evaluate: async <A extends { readonly result: string }>(
      question: ReadonlyArray<unknown>,
      ask: () => Promise<A>,
    ) => {
      const key = JSON.stringify(question)
      const cached = known.get(key)
      // The question starts with its kind, so the cached result has the matching type.
      if (cached !== undefined && cached.until > now()) return cached.answer as A
      const answer = await ask()
      if (answer.result !== "temperror") known.set(key, { until: now() + Timing.judgingAnswersMillis, answer })
      return answer
    },
  }
}
