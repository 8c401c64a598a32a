/** A call over one of the limits is refused here, and counted by the limit's name. */
import { type LimitState, refusal } from "@svc/domain/problems/Limit"
import * as Metrics from "../observe/Metrics.ts"

const refused = Metrics.counter("svc_rate_limited_total", "Calls over a limit, by its name", ["limit"])

export const overLimit = (limit: Omit<LimitState, "remaining">, detail: string) => {
  refused.of(limit.name).n++
  return refusal(limit, detail)
}
