/**
 * Links of agents as leases in the store. An edge inserts a lease when an agent attaches and renews all of its leases in
 * one statement; readers ignore expired leases. Leases are rows and not an actor's memory, so that they need no handover
 * when a process crashes and a gateway reads them with one indexed select.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { channel } from "../feed/CrossProcessFeed.ts"
import { orUnavailable, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** Returns the change feed key for the links and settings of a Tunnel. */
export const tunnelKey = (canonical: string) => `tunnel/${canonical}`

/** Returns the SQL expression that announces a change of links or settings, for the statement that makes the change. */
export const announced = (sql: Sql, canonical: Statement.Fragment | string) =>
  sql`pg_notify(${channel}, ${tunnelKey("")} || ${canonical})`

interface NewLink {
  readonly id: string
  readonly identityId: string
  readonly canonical: string
  readonly edgeId: string
  /** Address at which other edges reach this one (`host:port`). */
  readonly edgeAddress: string
  /** The agent's process. */
  readonly instance: string
  readonly client: string
  /** The agent's forwarding target (`host:port`); null if unknown. */
  readonly localHost: string | null
}

/** The agent process that has replaced another one for a name. */
export interface Successor {
  readonly instance: string
  readonly client: string
}

const make = Effect.gen(function* () {
  const writes = yield* Writes
  // Leases use the store's clock, because statements check their expiry.
  const until = writes`now() + ${Timing.linkLeaseMillis} * interval '1 millisecond'`
  const name = writes`canonical`

  return {
    /** Inserts the lease of a new link, which replaces links of other processes of the agent. */
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
        select ${announced(writes, name)} from made`
    }, orUnavailable),

    /**
     * Inserts the lease of an open link again after its row was lost, for example in a crash of PostgreSQL. The lease is not
     * restored if another process of the agent has the name (`successor`), or if the Identity no longer accepts links. A
     * lease that a concurrent renewal restored counts as restored.
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
          returning ${announced(writes, name)}
        )
        select exists (select from kept) as restored, (select to_jsonb(successor) from successor) as successor`
      return row!
    }, orUnavailable),

    detach: (ids: ReadonlyArray<string>) =>
      orUnavailable(writes`
        with gone as (delete from tunnel_link where id = any(${ids}::uuid[]) returning canonical)
        select ${announced(writes, name)} from (select distinct canonical from gone) g`),

    /**
     * Renews the leases of open links. Returns the renewed ids, and for each whether the Identity's status says connected.
     * Leases whose row or Identity was removed are missing.
     */
    renew: Effect.fn("TunnelLinks.renew")(function* (ids: ReadonlyArray<string>) {
      const rows = yield* writes<{ id: string; known: boolean }>`
        update tunnel_link l set lease_until = ${until}
        from identity i where l.id = any(${ids}::uuid[]) and i.id = l.identity_id and i.status = 'ready'
        returning l.id, i.tunnel_connected as known`
      return new Map(rows.map(({ id, known }) => [id, known]))
    }, orUnavailable),

    /** Returns the names whose status says connected although they have no link. Call `sweep` first, which deletes expired links. */
    unlinked: orUnavailable(
      Effect.map(
        writes<{ canonical: string }>`
          select canonical from identity i where tunnel_connected and status = 'ready'
            and not exists (select from tunnel_link l where l.identity_id = i.id)`,
        (rows) => rows.map(({ canonical }) => canonical),
      ),
    ),

    /** Deletes expired leases, whose edge has crashed. Returns their names. */
    sweep: orUnavailable(
      Effect.map(
        writes<{ canonical: string }>`
          with gone as (delete from tunnel_link where lease_until < now() returning canonical)
          select canonical, ${announced(writes, name)} from (select distinct canonical from gone) g`,
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
