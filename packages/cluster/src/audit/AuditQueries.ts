/**
 * Reads the audit log, newest first. Like lists of Events, a list stops before transactions that are still running, so
 * that a cursor never skips a record that commits late.
 */
import type { AuditActorKind, AuditClass, AuditOutcome, AuditRecord, AuditVia } from "@svc/domain/audit/AuditRecord"
import { canonical } from "@svc/domain/handles/Handle"
import { fromPublic, toPublic, uuidMillis } from "@svc/domain/Ids"
import { NotFound } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import type { Statement } from "effect/sql"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { type SealKeys, ServiceKey } from "../sealing/ServiceKey.ts"
import { orUnavailable, Reads } from "../store/Database.ts"
import { settledOf } from "../store/SettledReads.ts"
import * as Chain from "./Chain.ts"
import * as Proof from "./Proof.ts"

interface Row {
  readonly org_id: string
  readonly id: string
  readonly at: Date
  readonly class: AuditClass
  readonly action: string
  readonly actor_kind: AuditActorKind
  readonly actor_id: string | null
  readonly actor_name: string | null
  readonly actor_client: string | null
  readonly handle: string | null
  readonly target_type: string | null
  readonly target_id: string | null
  readonly target_name: string | null
  readonly outcome: AuditOutcome
  readonly code: string | null
  readonly scope: string | null
  readonly address: string | null
  readonly via: AuditVia
  readonly tool: string | null
  readonly user_agent: string | null
  readonly request_id: string | null
  readonly count: number
}

interface SealedRow extends Row {
  /** The name of a key or an app that the record identifies by its id only. */
  readonly known_name: string | null
  readonly seq: bigint | null
  readonly hash: Uint8Array | null
}

/** The columns of {@link Row} in a table with the alias `a`. */
const columns = `a.org_id, a.id, a.at, a.class, a.action, a.actor_kind, a.actor_id, a.actor_name, a.actor_client, a.handle,
  a.target_type, a.target_id, a.target_name, a.outcome, a.code, a.scope, a.address, a.via, a.tool, a.user_agent, a.request_id, a.count`

/** A row with the further members that its proof covers. */
export interface ProvableRow extends Row {
  readonly identity_id: string | null
  readonly proof: string | null
}
export const provableColumns = `${columns}, a.identity_id, a.proof`

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")

/** Returns a record without its seal, as the API shows it and the chain hashes it. */
const shown = (row: Row): Omit<AuditRecord, "sealed"> => ({
  id: toPublic("aud_", row.id),
  at: row.at,
  class: row.class,
  action: row.action,
  actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name, client: row.actor_client },
  identity: row.handle,
  target: row.target_type === null ? null : { type: row.target_type, id: row.target_id, name: row.target_name },
  outcome: row.outcome,
  code: row.code,
  scope: row.scope,
  source: { address: row.address, via: row.via, tool: row.tool, user_agent: row.user_agent },
  request_id: row.request_id,
  count: row.count,
})

const view = (row: SealedRow): AuditRecord => ({
  ...shown({ ...row, target_name: row.target_name ?? row.known_name }),
  sealed: row.seq === null || row.hash === null ? null : { seq: Number(row.seq), hash: hex(row.hash) },
})

interface SealedLine extends ProvableRow {
  readonly seq: bigint
  readonly hash: Uint8Array
  readonly previous: Uint8Array
  readonly unproven: boolean | null
  readonly key: string | null
  readonly mac: Uint8Array | null
}

/**
 * Returns whether the service sealed a record. Records from versions without MACs have none and are closed by a bridge.
 */
const isSealed = ({ byId, bridgingUntil }: SealKeys, row: SealedLine) =>
  row.mac === null
    ? row.at.getTime() < bridgingUntil
    : Chain.isSealedBy(
        byId,
        { org_id: row.org_id, seq: Number(row.seq), previous: hex(row.previous), hash: hex(row.hash) },
        row.key,
        row.mac,
      )

/**
 * Returns the seal for a line of an export. `proof` reports that the service did not write the record, `seal` that the
 * service did not make the seal.
 */
const sealOf = (key: Proof.ProofKey, keys: SealKeys, row: SealedLine) => ({
  seq: Number(row.seq),
  hash: hex(row.hash),
  previous: hex(row.previous),
  ...(row.mac === null ? {} : { key: row.key, mac: hex(row.mac) }),
  ...(isSealed(keys, row) ? {} : { seal: "lost" as const }),
  ...(row.unproven === true
    ? { proof: "none" as const }
    : Proof.holds(key, row, row.at.getTime())
      ? {}
      : { proof: "lost" as const }),
})

/** The end of a chain, which `audit_head` copies from the seal of the last record. */
export interface ChainEnd {
  readonly seq: bigint
  readonly hash: Uint8Array | null
  readonly previous: Uint8Array | null
  readonly key: string | null
  readonly mac: Uint8Array | null
  readonly mac_seq: bigint | null
}
export const endColumns = "seq, hash, previous, key, mac, mac_seq"

/**
 * Returns what the service may do with the end of a chain: continue it; close it by a bridge first, since a version without
 * MACs sealed it; or refuse it as forged.
 */
export const judgeEnd = (keys: SealKeys, org: string, end: ChainEnd, now: number): "ours" | "bridge" | "forged" => {
  if (end.hash === null) return end.seq === 0n ? "ours" : "forged"
  const isOurs =
    end.previous !== null &&
    end.mac_seq === end.seq &&
    Chain.isSealedBy(
      keys.byId,
      { org_id: org, seq: Number(end.seq), previous: hex(end.previous), hash: hex(end.hash) },
      end.key,
      end.mac,
    )
  if (isOurs) return "ours"
  return now < keys.bridgingUntil && end.mac_seq !== end.seq ? "bridge" : "forged"
}

/** Returns the JSON form of a record, which is hashed and exported. */
export const plainOf = (row: Row) => ({ ...shown(row), at: row.at.toISOString() })

interface AuditFilter {
  readonly since?: Date | undefined
  readonly until?: Date | undefined
  readonly class?: AuditClass | undefined
  readonly action?: string | undefined
  /** The id of a session, key or Grant. */
  readonly actor?: string | undefined
  readonly identity?: string | undefined
  readonly outcome?: AuditOutcome | undefined
  readonly address?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** Lines of an export that are read together. */
const portion = 500
const around = 60_000

const missing = new NotFound({ detail: "The record does not exist." })

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const serviceKey = yield* ServiceKey
  const sealed = sql`left join audit_seal s on s.org_id = a.org_id and s.record_id = a.id and s.record_at = a.at`
  /** Display names; the chain and exports only contain the record itself. */
  const known = sql`case a.target_type
    when 'api_key' then (select k.name from api_key k where k.org_id = a.org_id and k.id::text = a.target_id)
    when 'grant' then (select g.client_name from client_grant g
                       where g.org_id = a.org_id and g.id::text = a.target_id)
  end`
  const settled = sql`a.xid < pg_snapshot_xmin(pg_current_snapshot())`
  const ofIdentity = (identityId: string | null) =>
    identityId === null ? sql`` : sql`and a.identity_id = ${identityId}::uuid`

  const position = (list: string, cursor: string | undefined) => {
    if (cursor === undefined) return Effect.succeed(undefined)
    const [xid, id] = sealing.unstamp(list, cursor)?.split(" ") ?? []
    return xid === undefined || id === undefined ? Effect.fail(Cursors.invalidCursor()) : Effect.succeed({ xid, id })
  }

  return {
    /** Returns a page of records, of one Identity if it is given. */
    list: Effect.fn("AuditQueries.list")(function* (org: string, identityId: string | null, filter: AuditFilter) {
      const listName = Cursors.filteredList(`audit/${org}`, filter)
      const before = yield* position(listName, filter.cursor)
      const handle = filter.identity === undefined ? undefined : canonical(filter.identity)
      const found = (which: Statement.Fragment) => sql<SealedRow & { readonly xid: string; readonly settled: boolean }>`
        select ${sql.literal(columns)}, ${known} as known_name, s.seq, s.hash, a.xid::text as xid, ${settled} as settled
        from audit a ${sealed}
        where a.org_id = ${org}::uuid ${ofIdentity(identityId)} and ${which}
          ${before === undefined ? sql`` : sql`and (a.xid, a.id) < (${before.xid}::xid8, ${before.id}::uuid)`}
          ${filter.since === undefined ? sql`` : sql`and a.at >= ${filter.since}::timestamptz`}
          ${filter.until === undefined ? sql`` : sql`and a.at < ${filter.until}::timestamptz`}
          ${filter.class === undefined ? sql`` : sql`and a.class = ${filter.class}`}
          ${filter.action === undefined ? sql`` : sql`and a.action = ${filter.action}`}
          ${filter.actor === undefined ? sql`` : sql`and a.actor_id = ${filter.actor}`}
          ${handle === undefined ? sql`` : sql`and replace(lower(a.handle), '-', '') = ${handle}`}
          ${filter.outcome === undefined ? sql`` : sql`and a.outcome = ${filter.outcome}`}
          ${filter.address === undefined ? sql`` : sql`and a.address = ${filter.address}`}
        order by a.xid desc, a.id desc limit ${filter.limit + 1}`
      const rows = yield* settledOf(sql, settled, found)
      const page = rows.slice(0, filter.limit)
      const last = page.at(-1)
      return {
        records: page.map(view),
        next_cursor:
          rows.length > filter.limit && last !== undefined ? sealing.stamp(listName, `${last.xid} ${last.id}`) : null,
      }
    }, orUnavailable),

    read: Effect.fn("AuditQueries.read")(function* (org: string, identityId: string | null, id: string) {
      const uuid = fromPublic("aud_", id)
      if (uuid === undefined) return yield* missing
      // The id contains the record's time.
      const at = uuidMillis(uuid)
      const [row] = yield* sql<SealedRow>`
        select ${sql.literal(columns)}, ${known} as known_name, s.seq, s.hash from audit a ${sealed}
        where a.id = ${uuid}::uuid and a.org_id = ${org}::uuid ${ofIdentity(identityId)}
          and a.at between ${new Date(at - around)}::timestamptz and ${new Date(at + around)}::timestamptz`
      return row === undefined ? yield* missing : view(row)
    }, orUnavailable),

    /**
     * Returns the signed end of the Org's chain; null if nothing is sealed, or if the end is not the one that the
     * service sealed.
     */
    head: Effect.fn("AuditQueries.head")(function* (org: string) {
      const [row] = yield* sql<ChainEnd & { sealed_at: Date | null }>`
        select ${sql.literal(endColumns)}, sealed_at from audit_head where org_id = ${org}::uuid`
      if (row === undefined || row.hash === null || row.sealed_at === null) return { head: null }
      const end = judgeEnd(yield* serviceKey.ofSeals, org, row, yield* Clock.currentTimeMillis)
      if (end === "forged") return { head: null, refused_seq: Number(row.seq) }
      const head = {
        org_id: org,
        seq: Number(row.seq),
        hash: hex(row.hash),
        sealed_at: row.sealed_at.toISOString(),
      }
      const signature = Chain.sign(yield* serviceKey.key, head)
      return { head: { ...head, signature, key: yield* serviceKey.publicJwk } }
    }, orUnavailable),

    /** Returns reads since a time, counted by reader, operation and hour; newest first. */
    usage: Effect.fn("AuditQueries.usage")(function* (org: string, since: Date, limit: number) {
      const rows = yield* sql<{
        hour: Date
        actor_kind: AuditActorKind
        actor_id: string
        action: string
        tool: string
        handle: string
        count: number
      }>`
        select hour, actor_kind, actor_id, action, tool, handle, count::float8 as count from audit_usage
        where org_id = ${org}::uuid and hour >= ${since}::timestamptz
        order by hour desc, count desc, actor_id, action, tool, handle limit ${limit}`
      return rows.map(({ tool, handle, actor_kind, actor_id, ...row }) => ({
        ...row,
        actor: { kind: actor_kind, id: actor_id },
        tool: tool === "" ? null : tool,
        identity: handle === "" ? null : handle,
      }))
    }, orUnavailable),

    /**
     * Streams sealed records in the order of their seals, with the input of each hash, followed by records between them
     * that were never sealed. Reads only as fast as the consumer.
     */
    sealedLines: (org: string, since: Date | undefined, until: Date | undefined) =>
      Stream.concat(
        Stream.paginate(0n, (after: bigint) =>
          Effect.map(
            Effect.all([
              serviceKey.ofRecords,
              serviceKey.ofSeals,
              orUnavailable(sql<SealedLine>`
            select ${sql.literal(provableColumns)}, s.seq, s.hash, s.previous, s.unproven, s.key, s.mac
            from audit_seal s join audit a on a.id = s.record_id and a.at = s.record_at
            where s.org_id = ${org}::uuid and s.seq > ${after}::bigint
              ${since === undefined ? sql`` : sql`and s.record_at >= ${since}::timestamptz`}
              ${until === undefined ? sql`` : sql`and s.record_at < ${until}::timestamptz`}
              order by s.seq limit ${portion}`),
            ]),
            ([key, keys, rows]) =>
              [
                rows.map((row) => `${JSON.stringify({ ...plainOf(row), sealed: sealOf(key, keys, row) })}\n`),
                rows.length < portion ? Option.none() : Option.some(BigInt(rows.at(-1)!.seq)),
              ] as const,
          ),
        ),
        // Sealing follows the order of transactions and skips none.
        Stream.fromIterableEffect(
          Effect.map(
            orUnavailable(sql<Row>`
              select ${sql.literal(columns)} from audit a join audit_head h on h.org_id = a.org_id
              where a.org_id = ${org}::uuid and a.xid < h.xid
                and not exists (select from audit_seal s where s.org_id = a.org_id and s.record_id = a.id and s.record_at = a.at)
                ${since === undefined ? sql`` : sql`and a.at >= ${since}::timestamptz`}
                ${until === undefined ? sql`` : sql`and a.at < ${until}::timestamptz`}
              order by a.at, a.id limit ${portion}`),
            (rows) => rows.map((row) => `${JSON.stringify({ ...plainOf(row), sealed: null })}\n`),
          ),
        ),
      ),
  }
})

export class AuditQueries extends Context.Service<AuditQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/audit/AuditQueries",
) {
  static readonly layer = Layer.effect(AuditQueries, make)
}
