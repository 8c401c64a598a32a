/**
 * Links of agents as leases in the store: an edge writes one when an agent attaches, renews all of its own in one
 * statement, and whoever looks finds those that have not run out. (The design had an actor keep them in memory. Rows
 * need no hand-over when a process dies, are one indexed select for a gateway, and make `connected` a column.)
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { channel } from "../feed/CrossProcessFeed.ts"
import { tunnelKey } from "../feed/Keys.ts"
import { orUnavailable, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** Tells of a change of a name's links or settings, within the statement that makes it. */
export const told = (sql: Sql, canonical: Statement.Fragment | string) =>
  sql`pg_notify(${channel}, ${tunnelKey("")} || ${canonical})`

export interface NewLink {
  readonly id: string
  readonly identityId: string
  readonly canonical: string
  readonly edgeId: string
  /** Where other edges reach this one (`host:port`). */
  readonly edgeAddress: string
  /** The agent's process. */
  readonly instance: string
  readonly client: string
  /** What the agent forwards to (`host:port`); null where it did not say. */
  readonly localHost: string | null
}

/** The process of an agent that holds the name in place of another. */
export interface Successor {
  readonly instance: string
  readonly client: string
}

const make = Effect.gen(function* () {
  const writes = yield* Writes
  // By the store's clock, which is who looks whether a lease ran out.
  const until = writes`now() + ${Timing.linkLeaseMillis} * interval '1 millisecond'`
  const name = writes`canonical`

  return {
    /** Takes the lease, over the links that other processes of the agent hold: a newer one replaces them. */
    attach: Effect.fn("TunnelLinks.attach")(function* (link: NewLink) {
      const now = yield* Clock.currentTimeMillis
      yield* writes`
        with replaced as (
          delete from tunnel_link where canonical = ${link.canonical} and instance <> ${link.instance}
        ),
        made as (
          insert into tunnel_link (id, identity_id, canonical, edge_id, edge_address, instance, client, local_host, since, lease_until)
          values (${link.id}, ${link.identityId}, ${link.canonical}, ${link.edgeId}, ${link.edgeAddress}, ${link.instance},
                  ${link.client}, ${link.localHost}, ${new Date(now)}, ${until}) returning canonical
        )
        select ${told(writes, name)} from made`
    }, orUnavailable),

    /**
     * Writes the lease of a standing link again after its row was lost, as in a crash of PostgreSQL. If it is not restored,
     * either another process of the agent holds the name, which is the successor, or the Identity takes no links any more.
     * A lease that an overlapping renewal restored first counts as restored.
     */
    restore: Effect.fn("TunnelLinks.restore")(function* (link: NewLink) {
      const now = yield* Clock.currentTimeMillis
      const [row] = yield* writes<{ restored: boolean; successor: Successor | null }>`
        with successor as (
          select instance, client from tunnel_link
          where canonical = ${link.canonical} and instance <> ${link.instance} and lease_until > now()
          order by since desc limit 1
        ),
        kept as (
          insert into tunnel_link (id, identity_id, canonical, edge_id, edge_address, instance, client, local_host, since, lease_until)
          select ${link.id}, i.id, i.canonical, ${link.edgeId}, ${link.edgeAddress}, ${link.instance}, ${link.client},
                 ${link.localHost}, ${new Date(now)}, ${until}
          from identity i where i.id = ${link.identityId} and i.status = 'ready' and not exists (select from successor)
          on conflict (id) do update set lease_until = excluded.lease_until
          returning ${told(writes, name)}
        )
        select exists (select from kept) as restored, (select to_jsonb(successor) from successor) as successor`
      return row!
    }, orUnavailable),

    detach: (ids: ReadonlyArray<string>) =>
      orUnavailable(writes`
        with gone as (delete from tunnel_link where id = any(${ids}::uuid[]) returning canonical)
        select ${told(writes, name)} from (select distinct canonical from gone) g`),

    /**
     * Renews the leases of links that stand; answers those whose row and whose Identity are still there, and whether the
     * Identity's status knows that it is connected.
     */
    renew: Effect.fn("TunnelLinks.renew")(function* (ids: ReadonlyArray<string>) {
      const rows = yield* writes<{ id: string; known: boolean }>`
        update tunnel_link l set lease_until = ${until}
        from identity i where l.id = any(${ids}::uuid[]) and i.id = l.identity_id and i.status = 'ready'
        returning l.id, i.tunnel_connected as known`
      return new Map(rows.map(({ id, known }) => [id, known]))
    }, orUnavailable),

    /** Names whose status says connected, and which have no link. */
    unlinked: orUnavailable(
      Effect.map(
        writes<{ canonical: string }>`
          select canonical from identity i where tunnel_connected and status = 'ready'
            and not exists (select from tunnel_link l where l.identity_id = i.id and l.lease_until > now())`,
        (rows) => rows.map(({ canonical }) => canonical),
      ),
    ),

    /** Leases that ran out, because their edge died; answers the names concerned. */
    sweep: orUnavailable(
      Effect.map(
        writes<{ canonical: string }>`
          with gone as (delete from tunnel_link where lease_until < now() returning canonical)
          select canonical, ${told(writes, name)} from (select distinct canonical from gone) g`,
        (rows) => rows.map(({ canonical }) => canonical),
      ),
    ),
  }
})

export class TunnelLinks extends Context.Service<TunnelLinks, Effect.Success<typeof make>>()(
  "@svc/cluster/tunnel/TunnelLinks",
) {
  static readonly layer = Layer.effect(TunnelLinks, make)
}
