/**
 * Sealing the audit log, as work of the Org's actor: what has been committed gets its numbers and hashes some seconds
 * later, in one statement under the fence, so that a chain has one writer and no write waits for it. A process that dies on
 * the way has sealed nothing of it, and the next one goes on from where the chain ends. Once a day the end is signed and
 * told.
 */
import { system } from "@svc/domain/account/By"
import { Clock, Effect } from "effect"
import { commit } from "../actor/Write.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { ServiceKey } from "../sealing/ServiceKey.ts"
import { Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Source } from "../work/Source.ts"
import { plainOf, provableColumns, type ProvableRow } from "./AuditQueries.ts"
import * as Chain from "./Chain.ts"
import * as Proof from "./Proof.ts"

/** Records of one statement: 4 microseconds each to hash. */
const batch = 1_000

interface Head {
  readonly seq: bigint
  readonly hash: Uint8Array | null
  readonly xid: string
  readonly sealed_at: Date | null
  readonly due_at: Date | null
  readonly marks: bigint
  readonly signed_seq: bigint
  readonly signed_at: Date
}

interface Found extends ProvableRow {
  readonly xid: string
}

/** When there is something to do: to look for records, or to sign. */
const dueOf = ({ due_at, seq, signed_seq, signed_at }: Head): Date | null => {
  const signing = seq > signed_seq ? new Date(signed_at.getTime() + Timing.auditHeadMillis) : null
  return due_at === null ? signing : signing === null || due_at < signing ? due_at : signing
}

/** The Org, as far as its log is concerned. */
interface Logged {
  readonly id: string
  readonly status: "active" | "deleting"
}

export const source: Source<Logged, Reads | ServiceKey> = {
  name: "audit",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ org_id: string }>`
        select h.org_id from audit_head h join org o on o.id = h.org_id and o.status = 'active'
        where h.due_at <= ${late}
          or (h.seq > h.signed_seq and h.signed_at <= ${new Date(late.getTime() - Timing.auditHeadMillis)})
        order by h.due_at limit ${atMost}`,
      (rows) => rows.map(({ org_id }) => org_id),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Reads
    const serviceKey = yield* ServiceKey

    const headOf = (org: string) =>
      Effect.map(
        sql<Head>`
          select seq, hash, xid::text as xid, sealed_at, due_at, marks, signed_seq, signed_at from audit_head
          where org_id = ${org}::uuid`,
        ([row]) => row,
      )

    /** The next records in the order of transactions that have ended. */
    const next = (org: string, xid: string) => sql<Found>`
      select ${sql.literal(provableColumns)}, a.xid::text as xid from audit a
      where a.org_id = ${org}::uuid and a.xid >= ${xid}::xid8 and a.xid < pg_snapshot_xmin(pg_current_snapshot())
        and not exists (select from audit_seal s where s.org_id = a.org_id and s.record_id = a.id and s.record_at = a.at)
      order by a.xid, a.id limit ${batch}`

    const seal = Effect.fnUntraced(function* (org: string, head: Head, found: ReadonlyArray<Found>) {
      const key = yield* serviceKey.ofRecords
      const now = yield* Clock.currentTimeMillis
      let previous = head.hash ?? Chain.origin(org)
      const hashes: Array<Uint8Array> = []
      const before: Array<Uint8Array> = []
      const unproven: Array<boolean> = []
      for (const row of found) {
        const isOurs = Proof.holds(key, row, now)
        before.push(previous)
        previous = Chain.hashOf(previous, plainOf(row), !isOurs)
        hashes.push(previous)
        unproven.push(!isOurs)
      }
      const strange = unproven.filter((one) => one).length
      if (strange > 0) {
        yield* Effect.logError(
          `${strange} records of the audit log of the Org ${org} were not written by the service: somebody else writes to its database`,
        )
      }
      return yield* ownership.write(system, (write) =>
        commit(
          write,
          write.sql`
          begun as (
            select seq from audit_head where org_id = ${org}::uuid and seq = ${head.seq}::bigint and exists (select from fence) for update
          ),
          sealed as (
            insert into audit_seal (org_id, seq, record_id, record_at, previous, hash, unproven)
            select ${org}::uuid, begun.seq + n.n, n.id, n.at, n.previous, n.hash, nullif(n.unproven, false)
            from begun, unnest(${found.map(({ id }) => id)}::uuid[], ${found.map(({ at }) => at)}::timestamptz[],
              ${before}::bytea[], ${hashes}::bytea[], ${unproven}::boolean[]) with ordinality as n (id, at, previous, hash, unproven, n)
          ),
          moved as (
            update audit_head h set seq = h.seq + ${found.length}::int, hash = ${previous}::bytea, sealed_at = ${write.at}::timestamptz,
              xid = ${found.at(-1)!.xid}::xid8,
              due_at = ${found.length === batch ? write.at : new Date(write.at.getTime() + Timing.auditSealMillis)}::timestamptz
            from begun where h.org_id = ${org}::uuid
          )`,
        ),
      )
    })

    /** Nothing waits: nobody looks again until somebody says that there is something. */
    const rest = (org: string, { marks }: Head) =>
      ownership.write(system, (write) =>
        commit(
          write,
          write.sql`rested as (
            update audit_head set due_at = null
            where org_id = ${org}::uuid and marks = ${marks}::bigint and exists (select from fence))`,
        ),
      )

    const sign = Effect.fnUntraced(function* (org: string, { seq, hash, sealed_at }: Head) {
      const head = {
        seq: Number(seq),
        hash: Buffer.from(hash!).toString("hex"),
        sealed_at: sealed_at!.toISOString(),
      }
      const signature = Chain.sign(yield* serviceKey.key, { org_id: org, ...head })
      yield* ownership.write(system, (write) =>
        commit(
          write,
          write.sql`
          signed as (
            update audit_head set signed_seq = ${seq}::bigint, signed_at = ${write.at}::timestamptz
            where org_id = ${org}::uuid and signed_seq < ${seq}::bigint and exists (select from fence) returning org_id
          ),
          ${raiseForOrg({ ...write, org }, "signed", "audit.head", { ...head, signature })}`,
        ),
      )
    })

    return {
      dispatch: Effect.fnUntraced(function* ({ id, status }) {
        const head = status === "active" ? yield* headOf(id) : undefined
        const now = yield* Clock.currentTimeMillis
        const due = head === undefined ? null : dueOf(head)
        if (head === undefined || due === null || due.getTime() > now) return false
        if (head.due_at !== null && head.due_at.getTime() <= now) {
          const found = yield* next(id, head.xid)
          yield* found.length === 0 ? rest(id, head) : seal(id, head, found)
        } else yield* sign(id, head)
        return true
      }),
      nextDue: (org) =>
        org.status === "active"
          ? Effect.map(headOf(org.id), (head) => (head === undefined ? null : dueOf(head)))
          : Effect.succeed(null),
      isBusy: () => false,
      settle: Effect.void,
    }
  }),
}
