/** Counts a call without a credential against its limit, and sets the rate limit headers. */
import type { PublicLimitName } from "@svc/domain/account/Policy"
import type { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect } from "effect"
import { clientAddress } from "./ClientAddress.ts"
import { RequestContext } from "../RequestContext.ts"
import { note } from "./RateLimitHeaders.ts"

export const limited = (limits: PublicLimits["Service"], name: PublicLimitName) =>
  Effect.gen(function* () {
    const { limit, remaining, resetSeconds } = yield* limits.take(name, yield* clientAddress)
    note(yield* RequestContext, {
      name,
      quota: limit.quota,
      windowSeconds: limit.windowSeconds,
      remaining,
      resetSeconds,
    })
  })
