/** Queries for Connectors. They read from the store, which is committed before every reply of an actor. */
import type { Capability, ConnectedVia, Connector, PlatformName } from "@svc/domain/connectors/Connector"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { NotFound } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { hashOf, invalidState } from "./credentials/Authorizations.ts"

interface Row {
  readonly platform: PlatformName
  readonly status: "connected" | "stopped"
  readonly account: string
  readonly account_id: string
  readonly service: string
  readonly connected_via: ConnectedVia
  readonly capabilities: ReadonlyArray<Capability>
  readonly disclosed: boolean
  readonly paused: boolean
  readonly polled_at: Date | null
  readonly last_error: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

const view = (row: Row): Connector => ({
  ...row,
  // Ending the pause does not restart a stopped Connector.
  status: row.status === "stopped" ? "stopped" : row.paused ? "paused" : "connected",
})

const make = Effect.gen(function* () {
  const sql = yield* Reads

  const everyone = (id: IdentityId) =>
    sql`coalesce((select bool_or(q.everyone) from connector_pause q where q.identity_id = ${id}), false)`
  const select = (id: IdentityId) => sql`
    select c.platform, c.status, c.account, c.account_id, c.service, c.connected_via, c.capabilities, c.disclosed,
      coalesce(p.paused, false) or coalesce(p.everyone, ${everyone(id)}) as paused,
      c.polled_at, c.last_error, c.created_at, c.updated_at
    from connector c left join connector_pause p on p.identity_id = c.identity_id and p.platform = c.platform
    where c.identity_id = ${id}`

  return {
    list: (id: IdentityId) =>
      orUnavailable(
        Effect.gen(function* () {
          const rows = yield* sql<Row>`${select(id)} order by c.platform`
          const [pause] = yield* sql<{ everyone: boolean }>`select ${everyone(id)} as everyone`
          return { connectors: rows.map(view), paused: pause?.everyone ?? false }
        }),
      ),
    read: (id: IdentityId, platform: PlatformName) =>
      orUnavailable(sql<Row>`${select(id)} and c.platform = ${platform}`).pipe(
        Effect.flatMap(([row]) =>
          row === undefined
            ? Effect.fail(new NotFound({ detail: "The Connector does not exist." }))
            : Effect.succeed(view(row)),
        ),
      ),
    /**
     * Returns the Identity and platform of an authorization state. `within` limits the result to Identities that the
     * caller may access; null means all.
     */
    authorization: Effect.fnUntraced(function* (org: string, within: ReadonlyArray<IdentityId> | null, state: string) {
      const at = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* sql<{ id: IdentityId; canonical: string; handle: string; platform: PlatformName }>`
        select i.id, i.canonical, i.handle, a.platform from connector_authorization a join identity i on i.id = a.identity_id
        where a.state_hash = ${hashOf(state)} and a.org_id = ${org} and i.org_id = ${org} and a.expires_at > ${at}`
      if (row === undefined || (within !== null && !within.includes(row.id))) return yield* invalidState()
      return row
    }, orUnavailable),
  }
})

export class ConnectorQueries extends Context.Service<ConnectorQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/connectors/ConnectorQueries",
) {
  static readonly layer = Layer.effect(ConnectorQueries, make)
}
