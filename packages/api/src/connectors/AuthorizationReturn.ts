/** The end of an authorization: the address that the platform sent the browser to becomes a connection. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { Initiator } from "@svc/domain/account/Initiator"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { Effect } from "effect"
import * as ActorCalls from "../account/ActorCalls.ts"

/** The query of an address, or a query alone; undefined where it names no state. */
export const queryOf = (callback: string): URLSearchParams | undefined => {
  const text = callback.trim()
  const at = text.indexOf("?")
  const search = at >= 0 ? text.slice(at + 1) : text
  const hash = search.indexOf("#")
  const query = new URLSearchParams(hash >= 0 ? search.slice(0, hash) : search)
  return (query.get("state") ?? "") === "" ? undefined : query
}

/** Ends one that the caller's own Identity began; anybody else's is not known. */
export const make = Effect.gen(function* () {
  const askConnector = yield* ActorCalls.ofConnector
  const connectors = yield* ConnectorQueries
  return Effect.fnUntraced(function* (
    { org, identities, by }: Pick<CallerInfo, "org" | "identities"> & { readonly by: Initiator },
    query: URLSearchParams,
    apply_disclosure: boolean,
  ) {
    const state = query.get("state") ?? ""
    const begun = yield* connectors.authorization(org.id, identities?.map(({ id }) => id) ?? null, state)
    yield* askConnector({ canonical: begun.canonical, platform: begun.platform, by }, (actor, on) =>
      actor.Finish({ org_id: org.id, state, query: query.toString(), apply_disclosure }, on),
    )
    return yield* connectors.read(begun.id, begun.platform)
  })
})
