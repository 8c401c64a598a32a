/**
 * Seals the audit log as work of the Org's actor. Committed records get their numbers, hashes and MACs some seconds
 * later, in one statement under the fence, so that a chain has one writer and no write waits for it. If a process
 * crashes, nothing is sealed and the next one continues at the chain's end. The end is signed and reported once a day.
 * The actor only continues and signs an end that the service sealed: it checks the MAC of the end, and while it is in
 * memory also that the end is the one it wrote last.
 */
import { system } from "@svc/domain/account/Initiator"
import { Clock, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { commit, type Fenced, type FenceLost, learned } from "../actor/Write.ts"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { raiseForOrg } from "../events/Raise.ts"
import { ServiceKey } from "../sealing/ServiceKey.ts"
import { Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Source } from "../work/Source.ts"
import { type ChainEnd, endColumns, judgeEnd, plainOf, provableColumns, type ProvableRow } from "./AuditQueries.ts"
import * as Chain from "./Chain.ts"
import * as AuditWrite from "./AuditWrite.ts"
import * as Proof from "./Proof.ts"

/** Records per statement; hashing takes 4 microseconds each. */
const batch = 1_000

interface Head extends ChainEnd {
  readonly xid: string
  readonly sealed_at: Date | null
  readonly due_at: Date | null
  readonly marks: bigint
  readonly signed_seq: bigint
  readonly signed_at: Date
  readonly refused_at: Date | null
}

interface Found extends ProvableRow {
  readonly xid: string
}

/** Returns when to look for records or to sign. A rejected end is only checked again. */
const dueOf = ({ due_at, seq, signed_seq, signed_at, refused_at }: Head): Date | null => {
  if (refused_at !== null) return due_at
  const signing = seq > signed_seq ? new Date(signed_at.getTime() + Timing.auditHeadMillis) : null
  return due_at === null ? signing : signing === null || due_at < signing ? due_at : signing
}

/** The key under which the actor remembers the end (`Fenced.memory`). */
const place = "audit end"
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
const endOf = (seq: bigint, hash: Uint8Array | null) => `${seq} ${hash === null ? "" : hex(hash)}`

/** The part of the Org that sealing needs. */
interface Logged {
  readonly id: string
  readonly status: "active" | "deleting"
}

export const source: Source<Logged, Reads | ServiceKey> = {
  name: "audit",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ org_id: string }>`
        select h.org_id from (
          (select org_id from audit_head where due_at <= ${late} order by due_at limit ${atMost})
          union
          (select org_id from audit_head
           where refused_at is null and seq > signed_seq and signed_at <= ${new Date(late.getTime() - Timing.auditHeadMillis)}
           order by signed_at limit ${atMost})
        ) h join org o on o.id = h.org_id and o.status = 'active' limit ${atMost}`,
      (rows) => rows.map(({ org_id }) => org_id),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Reads
    const serviceKey = yield* ServiceKey

    const headOf = (org: string) =>
      Effect.map(
        sql<Head>`
          select ${sql.literal(endColumns)}, xid::text as xid, sealed_at, due_at, marks, signed_seq, signed_at, refused_at
          from audit_head
          where org_id = ${org}::uuid`,
        ([row]) => row,
      )

    /** Returns the next records, in the order of completed transactions. */
    const next = (org: string, xid: string) => sql<Found>`
      select ${sql.literal(provableColumns)}, a.xid::text as xid from audit a
      where a.org_id = ${org}::uuid and a.xid >= ${xid}::xid8 and a.xid < pg_snapshot_xmin(pg_current_snapshot())
        and not exists (select from audit_seal s where s.org_id = a.org_id and s.record_id = a.id and s.record_at = a.at)
      order by a.xid, a.id limit ${batch}`

    /** Writes under the fence, if the end in the store is the one that this actor wrote last. */
    const going = (
      org: string,
      head: Head,
      run: (write: Fenced) => Effect.Effect<unknown, SqlError.SqlError | FenceLost | Unavailable>,
    ) =>
      ownership.write(system, (write) => {
        const known = write.memory.get(place)
        return known === undefined || known === endOf(head.seq, head.hash) ? run(write) : refused(write, org, head)
      })

    /**
     * Returns the CTEs `begun` (a row if the chain still has the end that was read), `sealed` (the seals) and `moved` (the
     * new end).
     */
    const sealed = Effect.fnUntraced(function* (
      { sql, at }: Fenced,
      org: string,
      head: Head,
      found: ReadonlyArray<ProvableRow>,
      next: { readonly xid: string; readonly due: Date },
    ) {
      const key = yield* serviceKey.ofRecords
      const keys = yield* serviceKey.ofSeals
      const now = yield* Clock.currentTimeMillis
      let hash = head.hash ?? Chain.origin(org)
      let seq = Number(head.seq)
      const seals = found.map((row) => {
        const isOurs = Proof.holds(key, row, now)
        const previous = hash
        hash = Chain.hashOf(previous, plainOf(row), !isOurs)
        const covered = { org_id: org, seq: ++seq, previous: hex(previous), hash: hex(hash) }
        return { row, previous, hash, isOurs, mac: Chain.macOf(keys.byId.get(keys.current)!, covered) }
      })
      const strange = seals.filter(({ isOurs }) => !isOurs).length
      if (strange > 0) {
        yield* Effect.logError(
          `${strange} records of the audit log of the Org ${org} were not written by the service: somebody else writes to its database`,
        )
      }
      const last = seals.at(-1)!
      return {
        end: endOf(BigInt(seq), hash),
        begun: sql`begun as (
          select seq from audit_head where org_id = ${org}::uuid and seq = ${head.seq}::bigint and exists (select from fence)
          for update
        )`,
        rest: sql`sealed as (
          insert into audit_seal (org_id, seq, record_id, record_at, previous, hash, unproven, key, mac)
          select ${org}::uuid, begun.seq + n.n, n.id, n.at, n.previous, n.hash, nullif(n.unproven, false), ${keys.current}::text, n.mac
          from begun, unnest(${seals.map(({ row }) => row.id)}::uuid[], ${seals.map(({ row }) => row.at)}::timestamptz[],
            ${seals.map(({ previous }) => previous)}::bytea[], ${seals.map((one) => one.hash)}::bytea[],
            ${seals.map(({ isOurs }) => !isOurs)}::boolean[], ${seals.map(({ mac }) => mac)}::bytea[])
            with ordinality as n (id, at, previous, hash, unproven, mac, n)
        ),
        moved as (
          update audit_head h set seq = begun.seq + ${found.length}::int, hash = ${hash}::bytea,
            sealed_at = ${at}::timestamptz, previous = ${last.previous}::bytea, key = ${keys.current}::text,
            mac = ${last.mac}::bytea, mac_seq = begun.seq + ${found.length}::int, refused_at = null,
            xid = ${next.xid}::xid8, due_at = ${next.due}::timestamptz
          from begun where h.org_id = ${org}::uuid
        )`,
      }
    })

    /** Commits seals, and remembers their end if the chain still had the end that they continue. */
    const store = (write: Fenced, end: string, seals: Statement.Fragment) =>
      Effect.tap(
        commit<{ moved: boolean }>(write, seals, { columns: write.sql`exists (select from begun) as moved` }),
        ({ moved }) => Effect.sync(() => moved && learned(write, place, end)),
      )

    const seal = (org: string, head: Head, found: ReadonlyArray<Found>) =>
      going(
        org,
        head,
        Effect.fnUntraced(function* (write) {
          const due = found.length === batch ? write.at : new Date(write.at.getTime() + Timing.auditSealMillis)
          const { begun, rest, end } = yield* sealed(write, org, head, found, { xid: found.at(-1)!.xid, due })
          yield* store(write, end, write.sql`${begun}, ${rest}`)
        }),
      )

    /** Closes a chain from a version without MACs by a record that contains its signed end. */
    const bridge = (org: string, head: Head) =>
      going(
        org,
        head,
        Effect.fnUntraced(function* (write) {
          const closed = { org_id: org, seq: Number(head.seq), hash: hex(head.hash!) }
          const note = yield* AuditWrite.make(yield* serviceKey.ofRecords, {
            org,
            class: "change",
            action: Chain.bridgeAction,
            actor: { kind: "nobody", id: null, name: null, client: null },
            identity: null,
            target: Chain.bridgeOf(yield* serviceKey.key, closed),
            outcome: "allowed",
            code: null,
            scope: null,
            source: { address: null, via: "rest", tool: null, user_agent: null },
            requestId: null,
          })
          const row = { ...note.row, at: note.at }
          const { begun, rest, end } = yield* sealed(write, org, head, [row], { xid: head.xid, due: write.at })
          yield* store(
            write,
            end,
            write.sql`${begun}, ${AuditWrite.auditWrite(write.sql, AuditWrite.toNote(note), "begun")}, ${rest}`,
          )
        }),
      )

    /** Stops looking until the next mark, because no record waits. */
    const rest = (org: string, head: Head) =>
      going(org, head, (write) =>
        commit(
          write,
          write.sql`rested as (
            update audit_head set due_at = null, refused_at = null
            where org_id = ${org}::uuid and marks = ${head.marks}::bigint and exists (select from fence))`,
        ),
      )

    const sign = (org: string, head: Head) =>
      going(
        org,
        head,
        Effect.fnUntraced(function* (write) {
          const end = { seq: Number(head.seq), hash: hex(head.hash!), sealed_at: head.sealed_at!.toISOString() }
          const signature = Chain.sign(yield* serviceKey.key, { org_id: org, ...end })
          yield* commit(
            write,
            write.sql`
            signed as (
              update audit_head set signed_seq = ${head.seq}::bigint, signed_at = ${write.at}::timestamptz
              where org_id = ${org}::uuid and signed_seq < ${head.seq}::bigint and exists (select from fence) returning org_id
            ),
            ${raiseForOrg({ ...write, org }, "signed", "audit.head", { ...end, signature })}`,
          )
        }),
      )

    /** Leaves a forged end unchanged: later records stay unsealed until an operator repairs the log. */
    const refused = (write: Fenced, org: string, { seq }: Head) =>
      Effect.andThen(
        Effect.logError(
          `The audit log of the Org ${org} ends at record ${seq}, which is not the end that the service sealed: somebody else writes to its database, so nothing more is sealed. Restore the tables audit, audit_seal and audit_head from a backup`,
        ),
        commit(
          write,
          write.sql`refused as (
            update audit_head set refused_at = coalesce(refused_at, ${write.at}::timestamptz),
              due_at = ${new Date(write.at.getTime() + Timing.auditRefusedMillis)}::timestamptz
            where org_id = ${org}::uuid and exists (select from fence))`,
        ),
      )

    const judge = Effect.fnUntraced(function* (org: string, head: Head, now: number) {
      const keys = yield* serviceKey.ofSeals
      return head.seq < head.signed_seq ? "forged" : judgeEnd(keys, org, head, now)
    })

    return {
      dispatch: Effect.fnUntraced(function* ({ id, status }) {
        const head = status === "active" ? yield* headOf(id) : undefined
        const now = yield* Clock.currentTimeMillis
        const due = head === undefined ? null : dueOf(head)
        if (head === undefined || due === null || due.getTime() > now) return false
        const end = yield* judge(id, head, now)
        if (end === "forged") yield* ownership.write(system, (write) => refused(write, id, head))
        else if (end === "bridge") yield* bridge(id, head)
        else if (head.due_at !== null && head.due_at.getTime() <= now) {
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
