/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers) of the answer at hand. */
import type { ExchangeState } from "../Exchange.ts"

export interface LimitState {
  readonly name: string
  readonly quota: number
  readonly windowSeconds: number
  readonly remaining: number
  readonly resetSeconds: number
}

const append = (headers: Record<string, string>, name: string, item: string) => {
  headers[name] = headers[name] === undefined ? item : `${headers[name]}, ${item}`
}

export const note = ({ headers }: ExchangeState, limit: LimitState): void => {
  append(headers, "ratelimit-policy", `"${limit.name}";q=${limit.quota};w=${limit.windowSeconds}`)
  append(headers, "ratelimit", `"${limit.name}";r=${limit.remaining};t=${limit.resetSeconds}`)
}
