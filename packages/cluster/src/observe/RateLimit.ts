/** Creates and counts the problems of calls that exceed a limit. */
import { type LimitState, refusal } from "@svc/domain/problems/Limit"
import * as Metrics from "./Metrics.ts"

const refused = Metrics.counter("svc_rate_limited_total", "Calls over a limit, by its name", ["limit"])

export const overLimit = (limit: Omit<LimitState, "remaining">, detail: string) => {
  refused.of(limit.name).n++
  return refusal(limit, detail)
}
