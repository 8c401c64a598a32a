/** Counts a call without a credential against its limit, and sets the rate limit headers, also of pages. */
import type { PublicLimitName } from "@svc/domain/account/Policy"
import type { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect } from "effect"
import { clientAddress } from "./ClientAddress.ts"
import { RequestContext } from "../RequestContext.ts"
import { note } from "./RateLimitHeaders.ts"

export const limited = (limits: PublicLimits["Service"], name: PublicLimitName) =>
  Effect.gen(function* () {
    const exchange = yield* RequestContext
    const { limit, remaining, resetSeconds } = yield* Effect.tapError(
      limits.take(name, yield* clientAddress),
      ({ retry_after_seconds }) =>
        Effect.sync(() => {
          if (retry_after_seconds !== undefined) exchange.headers["retry-after"] = String(retry_after_seconds)
        }),
    )
    note(exchange, {
      name,
      quota: limit.quota,
      windowSeconds: limit.windowSeconds,
      remaining,
      resetSeconds,
    })
  })
