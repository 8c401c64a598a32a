/**
 * A write of an actor: one statement that changes the store only while the actor owns its entity. Whoever writes is
 * handed a {@link Write} and runs its statement through {@link commit}, which is the one place that asks whether the
 * fence held.
 */
import type { Initiator } from "@svc/domain/account/Initiator"
import { Effect, Exit, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { DataKey } from "../sealing/Sealing.ts"
import { inOrder } from "../store/Batcher.ts"
import type { Sql } from "../store/Database.ts"

/** Another process owns the entity: the statement changed nothing. */
export class FenceLost extends Schema.TaggedError<FenceLost>()("FenceLost", {}) {}

/** What a write says of its entity to prove that it still owns it. */
export interface Claim {
  readonly kind: string
  readonly id: string
  readonly epoch: number
}

/** What every write is handed, whichever entity it is about. */
export interface Fenced {
  readonly sql: Sql
  readonly claim: Claim
  /** CTE `fence`: a row, locked for the statement, while the epoch is still the one that was loaded. */
  readonly fence: Statement.Fragment
  /** The time of the write. */
  readonly at: Date
  /** Who asked for it. */
  readonly by: Initiator
  /** The statement queued work that is due now: the actor looks for it once the write is done. */
  readonly due: () => void
  /** The command that the statement does; it is noted with it (`Handling.once`). */
  readonly command?: Command | undefined
  /** What {@link recalled} keeps. */
  readonly memory: Map<string, unknown>
}

/**
 * A part of the entity that only its actor changes, read once: it is kept as long as the actor's state is, and forgotten
 * with it when an outcome is in doubt. Whoever changes it says so with {@link learned} after the commit.
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

/** A command, and which of the messages it is made of. */
export interface Command {
  readonly id: string
  readonly message: string
}

/** The Identity that a write is about. */
export interface OwnIdentity {
  readonly id: string
  readonly handle: string
  readonly orgId: string
  /** Opens and seals what the Org keeps secret. */
  readonly dataKey: DataKey
}

/** A write about an Identity. */
export interface Write extends Fenced {
  readonly identity: OwnIdentity
  /** The command that the message is part of; undefined where it came from no request. */
  readonly commandId?: string | undefined
  /** What the audit log is to say of the change (`audit/Note` `alsoNoted`); undefined where somebody else says it. */
  readonly note?: string | undefined
}

const noted = (sql: Sql, { id, message }: Command) => sql`
  noted as (
    insert into actor_command (id, message, done_at) select ${id}::uuid, ${message}::text, now() from fence
    on conflict do nothing
  )`

/**
 * CTE `repeated`: those of the commands that were done before. What a statement does for several commands it does where
 * there is none, and notes them itself ({@link notedAll}); the others are then done without those.
 */
export const repeated = (sql: Sql, message: string, ids: ReadonlyArray<string>): Statement.Fragment =>
  sql`repeated as (select id from actor_command where message = ${message}::text and id = any(${ids}::uuid[]))`

/** CTE `noted` for the commands of such a statement, where `gate` has a row. */
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
  /** Deliveries that the Events of the statement queued. */
  readonly queued?: number
}

/**
 * Runs `with fence, <ctes> select <columns>` and answers its row. Each CTE does nothing unless `fence` has a row; when it
 * has none the statement fails with {@link FenceLost}. Where it raises an Event for an Identity, `raises` tells the actor
 * of the deliveries that this queued.
 */
export const commit = <Row extends object = object>(
  { sql, fence, due, command }: Pick<Fenced, "sql" | "fence" | "due" | "command">,
  ctes: Statement.Fragment,
  select: { readonly columns?: Statement.Fragment; readonly raises?: boolean } = {},
): Effect.Effect<Row, SqlError.SqlError | FenceLost> =>
  Effect.flatMap(
    sql<Row & Answer>`
      with ${fence}, ${ctes} ${command === undefined ? sql`` : sql`, ${noted(sql, command)}`}
      select exists (select from fence) as owned
        ${select.raises === true ? sql`, (select count(*) from queued)::int as queued` : sql``}
        ${select.columns === undefined ? sql`` : sql`, ${select.columns}`}`,
    ([row]): Effect.Effect<Row, FenceLost> => {
      if (row?.owned !== true) return Effect.fail(new FenceLost())
      if (row.queued !== undefined && row.queued > 0) due()
      return Effect.succeed(row)
    },
  )

/**
 * {@link commit} for writes of several actors in one statement. CTE `fence` has a row for each that still owns its entity,
 * `n` its place (from 1); each CTE does nothing for the others, which fail with {@link FenceLost}. `columns` are of one row
 * of `fence`.
 */
export const commitTogether = <Row extends object>(
  writes: ReadonlyArray<Fenced>,
  ctes: Statement.Fragment,
  columns: Statement.Fragment,
): Effect.Effect<ReadonlyArray<Exit.Exit<Row, FenceLost>>, SqlError.SqlError> => {
  const sql = writes[0]!.sql
  return Effect.map(
    sql<Row & { readonly asked: number }>`
      with fence as materialized (
        select claimed.n::int as n
        from unnest(
          ${writes.map(({ claim }) => claim.kind)}::text[], ${writes.map(({ claim }) => claim.id)}::text[],
          ${writes.map(({ claim }) => claim.epoch)}::int[]) with ordinality as claimed (kind, id, epoch, n)
        join actor on actor.kind = claimed.kind and actor.id = claimed.id and actor.epoch = claimed.epoch
        for share of actor
      ), ${ctes}
      select fence.n as asked, ${columns} from fence`,
    (rows) => inOrder(writes)(rows).map((row) => (row === undefined ? Exit.fail(new FenceLost()) : Exit.succeed(row))),
  )
}
