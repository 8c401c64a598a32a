/** Completes an OAuth authorization at a platform: turns the address to which the platform redirected into a connection. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { Initiator } from "@svc/domain/account/Initiator"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { Effect } from "effect"
import * as ActorCalls from "../account/ActorCalls.ts"
import { RequestContext } from "../RequestContext.ts"

/** Parses the query of an address, or a bare query; returns undefined without a `state`. */
export const queryOf = (callback: string): URLSearchParams | undefined => {
  const text = callback.trim()
  const at = text.indexOf("?")
  const search = at >= 0 ? text.slice(at + 1) : text
  const hash = search.indexOf("#")
  const query = new URLSearchParams(hash >= 0 ? search.slice(0, hash) : search)
  return (query.get("state") ?? "") === "" ? undefined : query
}

/** Completes an authorization that the caller's own Identity started; others are reported as unknown. */
export const make = Effect.gen(function* () {
  const askConnector = yield* ActorCalls.ofConnector
  const connectors = yield* ConnectorQueries
  return Effect.fnUntraced(function* (
    { org, identities, by }: Pick<CallerInfo, "org" | "identities"> & { readonly by: Initiator },
    query: URLSearchParams,
    apply_disclosure: boolean,
  ) {
    const state = query.get("state") ?? ""
    const authorization = yield* connectors.authorization(org.id, identities?.map(({ id }) => id) ?? null, state)
    const { id, handle, platform } = authorization
    const exchange = yield* RequestContext
    exchange.about = { identity: { id, handle }, target: { type: "connector", id: null, name: platform } }
    yield* askConnector({ canonical: authorization.canonical, platform, by }, (actor, on) =>
      actor.Finish({ org_id: org.id, state, query: query.toString(), apply_disclosure }, on),
    )
    return yield* connectors.read(id, platform)
  })
})
