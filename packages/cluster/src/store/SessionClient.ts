/**
 * A PostgreSQL client that sets session settings on each new connection. A statement sets them instead of startup
 * parameters, because PgBouncer rejects unknown startup parameters or silently ignores them. The client also reports when
 * its pool can no longer connect, and when it can again.
 *
 * The rest equals the client of `@effect/sql-pg`, whose pool has no hook for new connections.
 */
import { PgClient, type PgConnection, PgPool } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import type { Reachability } from "./Reachability.ts"

type Failing<A> = Effect.Effect<A, SqlError.SqlError>

/** A connection of the pool for statements. Rows keep the names of their columns. */
class Connection implements SqlConnection.Connection {
  private readonly session: PgConnection.PgConnection

  constructor(session: PgConnection.PgConnection) {
    this.session = session
  }

  private rows(query: string, params: ReadonlyArray<unknown>, prepare: boolean) {
    return Effect.map(this.session.query(query, params, prepare), (result) => result.rows)
  }

  execute(query: string, params: ReadonlyArray<unknown>) {
    return this.rows(query, params, true)
  }
  executeRaw(query: string, params: ReadonlyArray<unknown>): Failing<PgConnection.Result> {
    return this.session.query(query, params)
  }
  executeWithoutTransform(query: string, params: ReadonlyArray<unknown>) {
    return this.rows(query, params, true)
  }
  executeValues(query: string, params: ReadonlyArray<unknown>) {
    return this.session.queryValues(query, params)
  }
  executeValuesUnprepared(query: string, params: ReadonlyArray<unknown>) {
    return this.session.queryValues(query, params, false)
  }
  executeUnprepared(query: string, params: ReadonlyArray<unknown>) {
    return this.rows(query, params, false)
  }
  executeStream(query: string, params: ReadonlyArray<unknown>) {
    return this.session.stream(query, params)
  }
}

/** PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK. */
const commit = (connection: SqlConnection.Connection): Failing<void> =>
  Effect.flatMap(connection.executeRaw("COMMIT", []) as Failing<PgConnection.Result>, ({ command }) => {
    if (command !== "ROLLBACK") return Effect.void
    const message = "COMMIT rolled back a failed transaction"
    const reason = new SqlError.UnknownError({ cause: new Error(message), message, operation: "commit" })
    return Effect.fail(new SqlError.SqlError({ reason }))
  })

interface Options {
  readonly pool: PgClient.PgPoolConfig
  /** The settings of each session, by the names of PostgreSQL's settings. */
  readonly settings: Readonly<Record<string, string>>
  readonly reachability: Reachability
}

const make = Effect.fnUntraced(function* ({ pool: config, settings, reachability }: Options) {
  const pool = yield* PgPool.make(config)
  // It opens no connection: the parts of it that need none are taken over.
  const library = yield* PgClient.make(config)
  const entries = Object.entries(settings)
  const set = `select ${entries.map((_, at) => `set_config($${2 * at + 1}, $${2 * at + 2}, false)`).join(", ")}`

  /** Sessions whose settings are set. */
  const ready = new WeakMap<PgConnection.PgConnection, Connection>()
  const prepare = (session: PgConnection.PgConnection): Failing<Connection> =>
    Effect.suspend(() => {
      const known = ready.get(session)
      if (known !== undefined) return Effect.succeed(known)
      return Effect.andThen(session.query(set, entries.flat(), false), () => {
        const made = new Connection(session)
        ready.set(session, made)
        return Effect.as(reachability.reached, made)
      })
    })

  const watched = <A, E, R>(effect: Effect.Effect<A, E | SqlError.SqlError, R>) =>
    Effect.tapError(effect, (error) =>
      SqlError.isSqlError(error) && error.reason.operation === "connect" ? reachability.failed(error) : Effect.void,
    )
  const get = watched(Effect.tap(pool.get, prepare))
  const reserve = Effect.flatMap(get, (session) => session.pin)

  return Object.assign(
    yield* SqlClient.make({
      driver: library.driver,
      acquirer: Effect.flatMap(get, prepare),
      borrower: (use) =>
        watched(
          pool.use((session) => {
            const known = ready.get(session)
            return known === undefined ? Effect.flatMap(prepare(session), use) : use(known)
          }),
        ),
      transactionAcquirer: Effect.map(reserve, (session) => new Connection(session)),
      compiler: PgClient.makeCompiler(),
      prepareTransactionControls: true,
      commit,
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      spanAttributes: [
        ["db.system.name", "postgresql"],
        ["db.namespace", config.database ?? config.username ?? "postgres"],
        ["server.address", config.host ?? "localhost"],
        ["server.port", config.port ?? 5432],
      ],
    }),
    {
      [PgClient.TypeId]: PgClient.TypeId,
      config,
      json: library.json,
      listen: (channel: string) => Effect.flatMap(reserve, (session) => session.listen(channel)),
      notify: (channel: string, payload: string) =>
        Effect.asVoid(
          Effect.scoped(
            Effect.flatMap(get, (session) => session.query("select pg_notify($1, $2)", [channel, payload])),
          ),
        ),
    },
  )
})

/** The client for as long as a layer lives. */
export const layer = (options: Options): Layer.Layer<PgClient.PgClient, SqlError.SqlError> =>
  Layer.effect(PgClient.PgClient, make(options)).pipe(Layer.provide(Reactivity.layer))
