/** A limit as its caller is told of it: with every call that counts, and with the refusal once it is reached. */
import { RateLimited } from "./Problem.ts"

export interface LimitState {
  readonly name: string
  readonly quota: number
  /** Left out where the limit is one of things open at once. */
  readonly windowSeconds?: number
  readonly remaining: number
  readonly resetSeconds: number
}

const reached = new WeakMap<object, LimitState>()

/** The refusal of a call over a limit. */
export const refusal = (limit: Omit<LimitState, "remaining">, detail: string): RateLimited => {
  const problem = new RateLimited({ detail, retry_after_seconds: limit.resetSeconds })
  reached.set(problem, { ...limit, remaining: 0 })
  return problem
}

/** The limit that a problem tells of; undefined where it is about something else. */
export const limitOf = (problem: object): LimitState | undefined => reached.get(problem)
