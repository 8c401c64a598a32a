/**
 * Whether each of our connections is a session of its own. Behind a pooler in transaction mode it is not: locks of
 * shards, settings, prepared statements and LISTEN would land in whichever session is free. It is found out at the start.
 */
import { Effect, Schema } from "effect"
import type { SqlConnection, SqlError } from "effect/sql"
import { Unhurried } from "./Database.ts"

/** The database cannot carry the service; `message` says what to do. */
export class StoreUnfit extends Schema.TaggedError<StoreUnfit>()("StoreUnfit", { message: Schema.String }) {}

export const poolerRefused =
  "DATABASE_URL leads to a connection pooler in transaction mode, and the service needs sessions of its own: name PostgreSQL itself, or a pool in session mode."

/** Runs a statement on one connection; answers the pid of the server's process that ran it. */
export type Ask = (statement: string) => Effect.Effect<number, SqlError.SqlError>

/**
 * Whether two connections share a session. The second holds a transaction open on what the first one used last: a pooler
 * hands it the first one's session, and the first one another.
 */
export const areShared = Effect.fnUntraced(function* (first: Ask, second: Ask) {
  const pid = "select pg_backend_pid() as pid"
  const before = yield* first(pid)
  yield* second("begin")
  const held = yield* second(pid)
  const after = yield* first(pid)
  yield* second("rollback")
  return before === held || before !== after
})

const asking =
  (connection: SqlConnection.Connection): Ask =>
  (statement) =>
    Effect.map(connection.executeUnprepared(statement, [], undefined), (rows) => Number(rows[0]?.["pid"] ?? 0))

export const refusePooler = Effect.scoped(
  Effect.gen(function* () {
    const sql = yield* Unhurried
    const shared = yield* areShared(asking(yield* sql.reserve), asking(yield* sql.reserve))
    if (shared) return yield* new StoreUnfit({ message: poolerRefused })
  }),
)
