/** The overview of an account for its account holder. */
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { nearAt } from "@svc/domain/limits/LimitApi"
import { type Need, needsOfKind, overviewDays, overviewEvents, overviewIdentities } from "@svc/domain/usage/OverviewApi"
import { stepMillis, type UsageSeries } from "@svc/domain/usage/UsageApi"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { LimitUses } from "@svc/cluster/limits/LimitUses"
import { OverviewQueries } from "@svc/cluster/account/OverviewQueries"
import { spanOf, UsageQueries } from "@svc/cluster/usage/UsageQueries"
import { Clock, Effect } from "effect"
import * as RequestServices from "../http/RequestServices.ts"

/** Returns the activity of each Identity per day. */
const activityOf = (series: ReadonlyArray<UsageSeries>, from: Date) =>
  new Map(
    series.map(({ identity = "", points }) => {
      const days = Array.from({ length: overviewDays }, () => 0)
      for (const { at, value } of points) days[(at.getTime() - from.getTime()) / stepMillis.day] = value
      return [identity, days]
    }),
  )

export const layer = RequestServices.group(
  Api,
  "overview",
  Effect.fn(function* (handlers) {
    const overview = yield* OverviewQueries
    const usage = yield* UsageQueries
    const events = yield* EventQueries
    const limits = yield* LimitUses

    const limitsNear = (org: string) =>
      Effect.map(limits.list(org, undefined), (uses) =>
        uses
          .filter(({ used, limit }) => used >= nearAt(limit))
          .slice(0, needsOfKind)
          .map(({ name, identity }): Need => ({ kind: "limit", identity, id: null, name, reason: null, at: null })),
      )

    return handlers.handleAll({
      read: Effect.fnUntraced(
        function* () {
          const { org } = yield* Caller
          const now = yield* Clock.currentTimeMillis
          const span = spanOf("day", new Date(now - (overviewDays - 1) * stepMillis.day), new Date(now))
          const [needs, near, latest, series] = yield* Effect.all(
            [
              overview.needs(org.id),
              limitsNear(org.id),
              events.list(org.id, { limit: overviewEvents }),
              usage.read(org.id, null, span, true),
            ],
            { concurrency: 4 },
          )
          const { activity = [], account = [] } = Object.groupBy(series, ({ metric }) =>
            metric === "activity" ? metric : "account",
          )
          const active = activityOf(activity, span.from)
          const none = Array.from({ length: overviewDays }, () => 0)
          return {
            needs: [...needs, ...near],
            starts_at: span.from,
            ends_at: span.to,
            series: account,
            identities: yield* overview.identities(
              org.id,
              [...active.keys()].slice(0, overviewIdentities),
              (handle) => active.get(handle) ?? none,
            ),
            events: latest.events,
          }
          // Neither a cursor nor a Handle is given, so nothing can be invalid or missing.
        },
        Effect.catchTag(["invalid_cursor", "not_found"], Effect.die),
      ),
    })
  }),
)
