/** The state of a limit, reported in the headers of every counted request and of its rejection. */
import { RateLimited } from "./Problem.ts"

export interface LimitState {
  readonly name: string
  readonly quota: number
  /** Absent for a limit on concurrency. */
  readonly windowSeconds?: number
  readonly remaining: number
  readonly resetSeconds: number
}

const reached = new WeakMap<object, LimitState>()

/** Creates the problem for a request over a limit. */
export const refusal = (limit: Omit<LimitState, "remaining">, detail: string): RateLimited => {
  const problem = new RateLimited({ detail, retry_after_seconds: limit.resetSeconds })
  reached.set(problem, { ...limit, remaining: 0 })
  return problem
}

/** Returns the limit that caused a problem, or undefined if the problem has another cause. */
export const limitOf = (problem: object): LimitState | undefined => reached.get(problem)
