/**
 * Links of agents as leases in the store: an edge writes one when an agent attaches, renews all of its own in one
 * statement, and whoever looks finds those that have not run out. (The design had an actor keep them in memory. Rows
 * need no hand-over when a process dies, are one indexed select for a gateway, and make `connected` a column.)
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { raiseForIdentity } from "../events/Raise.ts"
import { committed, type Owned, type Written } from "../identity/Ownership.ts"
import { orUnavailable, Reads, type Sql, Writes } from "../store/Database.ts"

/** A lease is renewed three times before it runs out. */
export const leaseMillis = 45_000
export const renewEvery = "15 seconds"

export interface LinkRow {
  readonly id: string
  readonly edge_id: string
  readonly edge_address: string
  readonly instance: string
}

/** Where a name stands: whether it exists, and who holds its links. */
export interface Standing {
  readonly identityId: string
  readonly handle: string
  readonly orgId: string
  readonly status: string
  readonly port: number | null
}

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const until = (now: number) => new Date(now + leaseMillis)

  return {
    /** The Identity of a name; undefined where there is none. */
    standing: (canonical: string) =>
      orUnavailable(
        Effect.map(
          reads<{ id: string; handle: string; org_id: string; status: string; port: number | null }>`
            select i.id, i.handle, i.org_id, i.status, p.port
            from identity i left join tunnel_port p on p.identity_id = i.id where i.canonical = ${canonical}`,
          ([row]): Standing | undefined =>
            row === undefined
              ? undefined
              : { identityId: row.id, handle: row.handle, orgId: row.org_id, status: row.status, port: row.port },
        ),
      ),

    attach: Effect.fn("TunnelLinks.attach")(function* (link: {
      readonly id: string
      readonly identityId: string
      readonly canonical: string
      readonly edgeId: string
      readonly edgeAddress: string
      readonly instance: string
      readonly client: string
    }) {
      const now = yield* Clock.currentTimeMillis
      yield* writes`
        insert into tunnel_link (id, identity_id, canonical, edge_id, edge_address, instance, client, since, lease_until)
        values (${link.id}, ${link.identityId}, ${link.canonical}, ${link.edgeId}, ${link.edgeAddress}, ${link.instance},
                ${link.client}, ${new Date(now)}, ${until(now)})`
    }, orUnavailable),

    detach: (ids: ReadonlyArray<string>) =>
      orUnavailable(writes`delete from tunnel_link where id = any(${ids}::uuid[])`),

    /** Renews this edge's leases; answers the ids that are still its own and whose Identity still may be reached. */
    renew: Effect.fn("TunnelLinks.renew")(function* (edgeId: string) {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* writes<{ id: string }>`
        update tunnel_link l set lease_until = ${until(now)}
        from identity i where l.edge_id = ${edgeId} and i.id = l.identity_id and i.status = 'ready' returning l.id`
      return new Set(rows.map(({ id }) => id))
    }, orUnavailable),

    /** Links of a name that other processes of the agent, or other edges, hold. */
    elsewhere: (canonical: string, edgeId: string) =>
      orUnavailable(reads<LinkRow>`
        select id, edge_id, edge_address, instance from tunnel_link
        where canonical = ${canonical} and edge_id <> ${edgeId} and lease_until > now() order by since desc`),

    /** Takes over a name: links of other processes of the agent are no longer leases. */
    replace: (canonical: string, instance: string) =>
      orUnavailable(writes`delete from tunnel_link where canonical = ${canonical} and instance <> ${instance}`),

    /** Leases that ran out, because their edge died; answers the names concerned. */
    sweep: orUnavailable(
      Effect.map(
        writes<{ canonical: string }>`delete from tunnel_link where lease_until < now() returning canonical`,
        (rows) => [...new Set(rows.map(({ canonical }) => canonical))],
      ),
    ),

    /** The A2A card that is served in an agent's place; undefined where the name has none. */
    cardOf: (canonical: string) =>
      orUnavailable(
        Effect.map(
          reads<{ fields: unknown }>`
            select c.fields from card c join identity i on i.id = c.identity_id where i.canonical = ${canonical} and i.status = 'ready'`,
          ([row]) => row?.fields,
        ),
      ),
  }
})

export class TunnelLinks extends Context.Service<TunnelLinks, Effect.Success<typeof make>>()(
  "@svc/cluster/tunnel/TunnelLinks",
) {
  static readonly layer = Layer.effect(TunnelLinks, make)
}

/** Notes whether the Identity is connected; a change raises its Event. Only its actor does, so each change is told once. */
export const noteChange = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  at: Date,
): Effect.fn.Return<Written<number> | undefined, SqlError.SqlError> {
  const links = yield* sql`select 1 from tunnel_link where identity_id = ${identity.id} and lease_until > now() limit 1`
  const connected = links.length > 0
  const eventId = yield* makeUuidV7
  const [row] = yield* sql<{ owned: boolean; queued: number }>`
    with ${fence}, changed as (
      update identity set tunnel_connected = ${connected}
      where id = ${identity.id} and tunnel_connected <> ${connected} and exists (select from fence) returning id
    ),
    ${raiseForIdentity(sql, "changed", {
      eventId,
      type: connected ? "tunnel.connected" : "tunnel.disconnected",
      org: identity.orgId,
      identity,
      data: {},
      at,
    })}
    select exists (select from fence) as owned, (select count(*) from queued)::int as queued`
  return committed(row, row?.queued ?? 0)
})
