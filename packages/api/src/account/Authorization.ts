/** Judges the credential of each call by what its endpoint demands and by the Org's limits, before the handler runs. */
import {
  Access,
  type AccessLevel,
  Authorization,
  Caller,
  type CallerInfo,
  CallPolicy,
  ShowsSecret,
  Tagged,
} from "@svc/domain/account/Authorization"
import type { Policy } from "@svc/domain/account/OrgProtocol"
import { canonical } from "@svc/domain/handles/Handle"
import { AdminRequired, ForeignIdentity, OrgScopeRequired, SessionRequired } from "@svc/domain/problems/Problem"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { Context, Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { Exchange, type ExchangeState } from "../Exchange.ts"
import * as Idempotency from "../idempotency/Idempotency.ts"
import { note } from "../limits/RateLimitHeaders.ts"

const permit = (access: AccessLevel, caller: CallerInfo, handle: string | undefined) => {
  if (access === "session" && caller.kind !== "session") {
    return Effect.fail(new SessionRequired({ detail: "Only a console session may do this." }))
  }
  if (caller.kind !== "identity_key") return Effect.void
  if (access === "org")
    return Effect.fail(new OrgScopeRequired({ detail: "An Identity Key cannot act for the whole Org." }))
  if (access === "admin") return Effect.fail(new AdminRequired({ detail: "An Identity Key may not do this." }))
  if (handle !== undefined && canonical(handle) !== caller.identity?.canonical) {
    return Effect.fail(new ForeignIdentity({ detail: "An Identity Key may name only its own Identity." }))
  }
  return Effect.void
}

/** An endpoint without the annotation would be open to every credential, so it is a defect to serve one. */
const accessOf = (endpoint: {
  readonly identifier: string
  readonly annotations: Context.Context<never>
}): AccessLevel => {
  const access = Context.getOrUndefined(endpoint.annotations, Access)
  if (access === undefined) throw new Error(`the endpoint ${endpoint.identifier} does not say who may call it`)
  return access
}

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const credentials = yield* CredentialLookup
    const limits = yield* OrgLimits
    const repeatable = yield* Idempotency.make

    const take = (exchange: ExchangeState, org: string, policy: Policy) =>
      Effect.map(limits.take(org, policy), ({ quota, remaining, resetSeconds }) =>
        note(exchange, { name: policy, quota, windowSeconds: 60, remaining, resetSeconds }),
      )

    return Authorization.of({
      api_key: Effect.fnUntraced(function* (handler, { credential, endpoint }) {
        const caller = yield* credentials.resolve(credential)
        const exchange = yield* Exchange
        yield* take(exchange, caller.org.id, "calls")
        const policy = Context.getOrUndefined(endpoint.annotations, CallPolicy)
        if (policy !== undefined) yield* take(exchange, caller.org.id, policy)
        const { params } = yield* HttpRouter.RouteContext
        yield* permit(accessOf(endpoint), caller, params["handle"])
        exchange.tagged = Context.get(endpoint.annotations, Tagged)
        const secret = Context.get(endpoint.annotations, ShowsSecret)
        return yield* Effect.provideService(repeatable(handler, caller, secret), Caller, caller)
      }),
    })
  }),
)
