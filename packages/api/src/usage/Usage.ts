/** The sums of activity of the account, or of one Identity. */
import { Api } from "@svc/domain/Api"
import { Realm } from "@svc/domain/account/Authorization"
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { defaultSteps, stepMillis, stepsAtMost } from "@svc/domain/usage/UsageApi"
import { spanOf, UsageQueries } from "@svc/cluster/usage/UsageQueries"
import { Clock, Effect } from "effect"
import * as RequestServices from "../http/RequestServices.ts"

const refused = (path: string, message: string) =>
  new InvalidRequest({ detail: "The span of the request is invalid.", errors: [{ path, message }] })

export const layer = RequestServices.group(
  Api,
  "usage",
  Effect.fn(function* (handlers) {
    const usage = yield* UsageQueries
    return handlers.handleAll({
      read: Effect.fnUntraced(function* ({ query: { step, by, ...requested } }) {
        const { orgId, subject } = yield* Realm
        const size = stepMillis[step]
        const to = requested.to ?? new Date(yield* Clock.currentTimeMillis)
        // The current step is the last one of the default span.
        const from = requested.from ?? new Date(to.getTime() - (defaultSteps[step] - 1) * size)
        if (from.getTime() >= to.getTime()) return yield* refused("/from", "must be before `to`")
        const span = spanOf(step, from, to)
        if (span.to.getTime() - span.from.getTime() > stepsAtMost * size)
          return yield* refused(
            "/from",
            `the span has more than ${stepsAtMost} steps; choose a shorter one or \`step=day\``,
          )
        return {
          starts_at: span.from,
          ends_at: span.to,
          step,
          series: yield* usage.read(orgId, subject, span, by === "identity"),
        }
      }),
    })
  }),
)
