/** Queries for Tunnels, for their owner and for edges that route requests. */
import type { StoredSignatures } from "@svc/domain/card/CardSignature"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { NotFound } from "@svc/domain/problems/Problem"
import { storedSettings, type TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, type Sql } from "../store/Database.ts"
import { passwordPlace } from "./Tunnels.ts"

/** An open link at an edge. */
interface Holder {
  readonly edge_id: string
  readonly edge_address: string
  readonly local_host: string | null
}

/** Everything that an edge needs to route a name. */
export interface Standing {
  readonly identityId: string
  readonly handle: string
  readonly orgId: string
  readonly status: string
  readonly port: number | null
  readonly settings: TunnelSettings
  /** SHA-256 of `username:password`, if basic authentication is enabled. */
  readonly passwordHash: Uint8Array | undefined
  /** Open links, newest first. */
  readonly holders: ReadonlyArray<Holder>
}

interface StandingRow {
  readonly id: string
  readonly handle: string
  readonly org_id: string
  readonly status: string
  readonly port: number | null
  readonly settings: unknown
  readonly password_hash: Uint8Array | null
  readonly data_key: Uint8Array
  readonly holders: ReadonlyArray<Holder>
}

/** Returns the SQL expression for whether the Tunnel of an Identity requires a password. */
export const isLocked = (sql: Sql, identity: Statement.Fragment | string) =>
  sql`exists (select from tunnel_setting t where t.identity_id = ${identity} and t.password_hash is not null)`

const settingsOf = (stored: unknown): Effect.Effect<TunnelSettings> => Effect.orDie(storedSettings(stored))

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing

  return {
    /** Returns the Tunnel of a name, or undefined if the Identity does not exist. */
    standing: Effect.fn("TunnelQueries.standing")(
      function* (canonical: string) {
        const [row] = yield* sql<StandingRow>`
          select i.id, i.handle, i.org_id, i.status, p.port, s.settings, s.password_hash, o.data_key,
                 coalesce((
                   select json_agg(json_build_object('edge_id', l.edge_id, 'edge_address', l.edge_address, 'local_host', l.local_host)
                                   order by l.since desc)
                   from tunnel_link l where l.canonical = i.canonical and l.lease_until > now()), '[]') as holders
          from identity i join org o on o.id = i.org_id
          left join tunnel_port p on p.identity_id = i.id left join tunnel_setting s on s.identity_id = i.id
          where i.canonical = ${canonical}`
        if (row === undefined) return undefined
        const standing: Standing = {
          identityId: row.id,
          handle: row.handle,
          orgId: row.org_id,
          status: row.status,
          port: row.port,
          settings: yield* settingsOf(row.settings),
          passwordHash:
            row.password_hash === null
              ? undefined
              : yield* sealing.open(
                  yield* sealing.openDataKey(row.org_id, row.data_key),
                  passwordPlace({ id: row.id, orgId: row.org_id }),
                  row.password_hash,
                ),
          holders: row.holders,
        }
        return standing
      },
      Effect.catchTag("CannotOpen", Effect.die),
      orUnavailable,
    ),

    /** Returns the links, the usage since the Identity was created, and the settings. */
    report: Effect.fn("TunnelQueries.report")(function* (identityId: IdentityId, createdAt: Date) {
      const links = yield* sql<{ edge: string; since: Date; client: string }>`
        select edge_id as edge, since, client from tunnel_link
        where identity_id = ${identityId} and lease_until > now() order by since`
      const [row] = yield* sql<{ bytes_in: bigint; bytes_out: bigint; requests: bigint; settings: unknown }>`
        select coalesce(u.bytes_in, 0) as bytes_in, coalesce(u.bytes_out, 0) as bytes_out,
               coalesce(u.requests, 0) as requests, s.settings
        from identity i left join tunnel_usage u on u.identity_id = i.id left join tunnel_setting s on s.identity_id = i.id
        where i.id = ${identityId}`
      if (row === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
      return {
        links,
        usage: {
          bytes_in: Number(row.bytes_in),
          bytes_out: Number(row.bytes_out),
          requests: Number(row.requests),
          since: createdAt,
        },
        settings: yield* settingsOf(row.settings),
      }
    }, orUnavailable),

    /** Returns the A2A Card that the edge serves, or undefined if the Identity is not ready. */
    cardOf: (canonical: string) =>
      orUnavailable(
        Effect.map(
          sql<{ fields: unknown; version: number; signature: StoredSignatures | null }>`
            select c.fields, c.version, c.signature from card c join identity i on i.id = c.identity_id where i.canonical = ${canonical} and i.status = 'ready'`,
          ([row]) => row,
        ),
      ),
  }
})

export class TunnelQueries extends Context.Service<TunnelQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/tunnel/TunnelQueries",
) {
  static readonly layer = Layer.effect(TunnelQueries, make)
}
