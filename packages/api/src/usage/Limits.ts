/** Lists every limit with its use: call budgets from the Org's actor, streams of this process, the rest from the store. */
import { Api } from "@svc/domain/Api"
import { Realm } from "@svc/domain/account/Authorization"
import type { Policy } from "@svc/domain/account/OrgProtocol"
import type { LimitUse } from "@svc/domain/limits/LimitApi"
import { LimitUses } from "@svc/cluster/limits/LimitUses"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { Clock, Effect } from "effect"
import { StreamLimits } from "../events/StreamLimits.ts"
import * as RequestServices from "../http/RequestServices.ts"

/** Calls of an Identity Key count in the first limit only. */
const budgets: ReadonlyArray<Policy> = ["calls", "identity_create", "handle_check"]

export const layer = RequestServices.group(
  Api,
  "limits",
  Effect.fn(function* (handlers) {
    const uses = yield* LimitUses
    const calls = yield* OrgLimits
    const streams = yield* StreamLimits

    const budget = Effect.fnUntraced(function* (org: string, policy: Policy) {
      const now = yield* Clock.currentTimeMillis
      const { quota, remaining, resetSeconds } = yield* calls.left(org, policy)
      const use: LimitUse = {
        name: policy,
        identity: null,
        unit: "calls",
        used: quota - remaining,
        limit: quota,
        window: "minute",
        resets_at: new Date(now + resetSeconds * 1000),
      }
      return use
    })

    return handlers.handleAll({
      list: Effect.fnUntraced(function* () {
        const { orgId, subject } = yield* Realm
        const taken = yield* Effect.forEach(subject === null ? budgets : budgets.slice(0, 1), (policy) =>
          budget(orgId, policy),
        )
        const open: LimitUse = {
          name: "streams_org",
          identity: null,
          unit: "streams",
          ...streams.ofOrg(orgId),
          window: null,
          resets_at: null,
        }
        return { limits: [...taken, open, ...(yield* uses.list(orgId, subject?.id))] }
      }),
    })
  }),
)
