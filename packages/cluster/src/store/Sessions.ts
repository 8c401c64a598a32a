/**
 * Checks that each connection is a separate session. Behind a pooler in transaction mode, connections share sessions, so
 * that shard locks, settings, prepared statements and LISTEN would affect a random session. The check runs at startup,
 * before anything is written, over connections without settings.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { connectionsPerProcess, poolSizes, Unhurried } from "./Database.ts"
import { Timing } from "../Timing.ts"

/** The database does not meet the requirements; `message` says what to do. */
export class StoreUnfit extends Schema.TaggedError<StoreUnfit>()("StoreUnfit", { message: Schema.String }) {}

const sharesSessions = new StoreUnfit({
  message:
    "DATABASE_URL leads to a connection pooler in transaction or statement mode, and the service needs sessions of its own: name PostgreSQL itself, or set pool_mode = session.",
})

const poolTooSmall = new StoreUnfit({
  message: `The connection pooler of DATABASE_URL gives this process fewer than ${connectionsPerProcess} sessions: set its pool size (default_pool_size of PgBouncer) and PostgreSQL's max_connections to ${connectionsPerProcess} for each process and 10 more.`,
})

/** Runs a statement on one connection. Returns the pid of the server's process that ran it. */
export type Ask = (statement: string) => Effect.Effect<number, SqlError.SqlError>

/**
 * Returns whether connections share sessions. While the second connection has an open transaction, a pooler gives it the
 * session that the first one used last, and another session to the first one.
 */
export const areShared = Effect.fnUntraced(function* (first: Ask, second: Ask) {
  const before = yield* first(pid)
  yield* second("begin")
  const held = yield* second(pid)
  const after = yield* first(pid)
  yield* second("rollback")
  return before === held || before !== after
})

const pid = "select pg_backend_pid() as pid"

const asking =
  (connection: PgConnection.PgConnection): Ask =>
  (statement) =>
    Effect.map(connection.query(statement, [], false), ({ rows }) => Number(rows[0]?.["pid"] ?? 0))

export const refusePooler = Effect.scoped(
  Effect.gen(function* () {
    const { config } = yield* Unhurried
    const open = PgConnection.make(config)
    const [first, second] = [yield* open, yield* open]
    const inTime = Effect.timeoutOrElse({ duration: Timing.ask, orElse: () => Effect.fail(poolTooSmall) })
    // A pooler responds to the start of a connection itself, with an invented pid.
    const isPooled = (yield* inTime(asking(first)(pid))) !== first.processId
    const shared = yield* areShared(asking(first), asking(second)).pipe(
      // In statement mode, PgBouncer closes the connection of a client that begins a transaction.
      Effect.catchIf(
        () => isPooled,
        () => Effect.succeed(true),
      ),
      inTime,
    )
    if (shared) return yield* sharesSessions
    if (!isPooled) return
    const rest = Array.from({ length: connectionsPerProcess - poolSizes.Unhurried - 2 }, () => open)
    yield* Effect.forEach(
      rest,
      Effect.flatMap((session) => asking(session)(pid)),
      { concurrency: "unbounded" },
    ).pipe(inTime)
  }),
)
