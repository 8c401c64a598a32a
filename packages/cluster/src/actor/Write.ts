/**
 * A write of an actor: one statement that changes the store only while the actor owns its entity. Writers receive a
 * {@link Write} and run their statement through {@link commit}, the only place that checks whether the fence held.
 */
import type { Initiator } from "@svc/domain/account/Initiator"
import { Effect, Exit, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { DataKey } from "../sealing/Sealing.ts"
import { inOrder } from "../store/Batcher.ts"
import type { Sql } from "../store/Database.ts"

/** Another process owns the entity, so the statement changed nothing. */
export class FenceLost extends Schema.TaggedError<FenceLost>()("FenceLost", {}) {}

/** Identifies the owner of the entity by which a write proves its ownership. */
export interface Claim {
  readonly kind: string
  readonly id: string
  readonly epoch: number
}

/** The parts of a write that do not depend on the kind of entity. */
export interface Fenced {
  readonly sql: Sql
  readonly claim: Claim
  /** CTE `fence`: has a row, locked for the statement, while the epoch is still the loaded one. */
  readonly fence: Statement.Fragment
  /** The time of the write. */
  readonly at: Date
  /** The initiator of the write. */
  readonly by: Initiator
  /** Reports that the statement queued work which is due, of a source or of any; the actor looks for it after the write. */
  readonly due: (source?: string) => void
  /** The command that the statement carries out and records (`ActorHandlers.once`). */
  readonly command?: Command | undefined
  /** Values cached by {@link recalled}. */
  readonly memory: Map<string, unknown>
}

/**
 * Reads a part of the entity that only its actor changes, and caches it as long as the actor's state. A write with
 * unknown outcome drops the cache. After a commit that changes the part, call {@link learned}.
 */
export const recalled = <A, E>(
  { memory }: Pick<Fenced, "memory">,
  part: string,
  read: Effect.Effect<A, E>,
): Effect.Effect<A, E> =>
  memory.has(part)
    ? Effect.succeed(memory.get(part) as A)
    : Effect.tap(read, (value) => Effect.sync(() => memory.set(part, value)))

export const learned = ({ memory }: Pick<Fenced, "memory">, part: string, value: unknown): void => {
  memory.set(part, value)
}

/** A command and the message of it that is carried out. */
interface Command {
  readonly id: string
  readonly message: string
}

/** The Identity that a write changes. */
export interface OwnIdentity {
  readonly id: string
  readonly handle: string
  readonly orgId: string
  /** The data key that encrypts and decrypts the Org's secrets. */
  readonly dataKey: DataKey
}

/** The audit record of a command, which the statement of the change stores (`audit/AuditWrite`). */
export interface AuditNote {
  readonly text: string
  /** Whether a statement stores the record if the change is made. */
  taken: boolean
}

/** A write to an Identity. */
export interface Write extends Fenced {
  readonly identity: OwnIdentity
  /** The id of the command; undefined if the message does not come from a request. */
  readonly commandId?: string | undefined
  /** The record of the command; undefined if it does not come from a request that is audited. */
  readonly note?: AuditNote | undefined
}

const noted = (sql: Sql, { id, message }: Command, gate: string) => sql`
  noted as (
    insert into actor_command (id, message, done_at)
    select ${id}::uuid, ${message}::text, now() from fence where exists (select from ${sql(gate)})
    on conflict do nothing
  )`

/**
 * CTE `repeated`: the commands that were carried out before. A statement for several commands only runs if it is empty,
 * and records them with {@link notedAll}; otherwise the new commands run without the repeated ones.
 */
export const repeated = (sql: Sql, message: string, ids: ReadonlyArray<string>): Statement.Fragment =>
  sql`repeated as (select id from actor_command where message = ${message}::text and id = any(${ids}::uuid[]))`

/** CTE `noted`: records the commands of such a statement if `gate` has a row. */
export const notedAll = (
  sql: Sql,
  message: string,
  ids: ReadonlyArray<string>,
  gate: string,
): Statement.Fragment => sql`
  noted as (
    insert into actor_command (id, message, done_at)
    select id, ${message}::text, now() from unnest(${ids}::uuid[]) as id where exists (select from ${sql(gate)})
  )`

interface Answer {
  readonly owned: boolean
  /** The number of deliveries that the statement's Events queued. */
  readonly queued?: number
}

/**
 * Runs `with fence, <ctes> select <columns>` and returns its row. Each CTE must do nothing unless `fence` has a row;
 * without one the statement fails with {@link FenceLost}. `raises` says that the statement raises an Event for an
 * Identity, so that the actor learns of the deliveries that it queued. `gate` names the CTE without whose rows the command
 * is refused, so that a repeat is refused too.
 */
export const commit = <Row extends object = object>(
  { sql, fence, due, command }: Pick<Fenced, "sql" | "fence" | "due" | "command">,
  ctes: Statement.Fragment,
  select: { readonly columns?: Statement.Fragment; readonly raises?: boolean; readonly gate?: string } = {},
): Effect.Effect<Row, SqlError.SqlError | FenceLost> =>
  Effect.flatMap(
    sql<Row & Answer>`
      with ${fence}, ${ctes} ${command === undefined ? sql`` : sql`, ${noted(sql, command, select.gate ?? "fence")}`}
      select exists (select from fence) as owned
        ${select.raises === true ? sql`, (select count(*) from queued)::int as queued` : sql``}
        ${select.columns === undefined ? sql`` : sql`, ${select.columns}`}`,
    ([row]): Effect.Effect<Row, FenceLost> => {
      if (row?.owned !== true) return Effect.fail(new FenceLost())
      if (row.queued !== undefined && row.queued > 0) due("deliveries")
      return Effect.succeed(row)
    },
  )

/**
 * Commits writes of several actors in one statement. CTE `fence` has a row for each actor that still owns its entity,
 * with its position `n` (from 1). The CTEs must do nothing for the others, whose writes fail with {@link FenceLost}.
 * `columns` refer to one row of `fence`.
 */
export const commitTogether = <Row extends object>(
  writes: ReadonlyArray<Fenced>,
  ctes: Statement.Fragment,
  columns: Statement.Fragment,
): Effect.Effect<ReadonlyArray<Exit.Exit<Row, FenceLost>>, SqlError.SqlError> => {
  const sql = writes[0]!.sql
  return Effect.map(
    sql<Row & { readonly requested: number }>`
      with fence as materialized (
        select claimed.n::int as n
        from unnest(
          ${writes.map(({ claim }) => claim.kind)}::text[], ${writes.map(({ claim }) => claim.id)}::text[],
          ${writes.map(({ claim }) => claim.epoch)}::int[]) with ordinality as claimed (kind, id, epoch, n)
        join actor on actor.kind = claimed.kind and actor.id = claimed.id and actor.epoch = claimed.epoch
        for share of actor
      ), ${ctes}
      select fence.n as requested, ${columns} from fence`,
    (rows) => inOrder(writes)(rows).map((row) => (row === undefined ? Exit.fail(new FenceLost()) : Exit.succeed(row))),
  )
}
