/**
 * The PostgreSQL clients. Each has its own connections, because the work differs: reads change nothing, writes wait for the disk,
 * migrations and exports may run for minutes, and the storage of the cluster library must never queue behind the others (its
 * lock session proves the ownership of shards).
 *
 * A connection runs one statement at a time. PostgreSQL executes the statements of a connection in order, and the pool prefers the
 * most recently used connection. If statements shared connections, a look-up would wait for a slow search, and a write for the
 * commits before it.
 */
import type { Socket } from "node:net"
import { PgClient } from "@effect/sql-pg"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Cause, Context, Effect, Layer, type Redacted } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import * as Metrics from "../observe/Metrics.ts"
import { Timing } from "../Timing.ts"
import * as Batcher from "./Batcher.ts"
import { within } from "./Deadline.ts"
import * as Line from "./DatabaseSocket.ts"
import * as Reachability from "./Reachability.ts"
import * as SessionClient from "./SessionClient.ts"

/** How to reach the server: a URL, or the parts the embedded one gives. */
export interface ConnectionSettings {
  readonly url?: Redacted.Redacted<string>
  readonly path?: string
  readonly host?: string
  readonly port?: number
  readonly username?: string
  readonly password?: Redacted.Redacted<string>
  readonly database?: string
}

/** The client for statements that change nothing. */
export class Reads extends Context.Service<Reads, PgClient.PgClient>()("@svc/cluster/store/Reads") {}
/** The client for statements and transactions that change something. */
export class Writes extends Context.Service<Writes, PgClient.PgClient>()("@svc/cluster/store/Writes") {}
/** The client for work that may take longer than a request may wait: migrations, batches, exports. */
export class Unhurried extends Context.Service<Unhurried, PgClient.PgClient>()("@svc/cluster/store/Unhurried") {}
/** The client for the cluster library's storage of runners and shard locks. */
export class ClusterSql extends Context.Service<ClusterSql, PgClient.PgClient>()("@svc/cluster/store/ClusterSql") {}

/**
 * Settings of every session. Dates are in UTC, whatever the time zone of the server. Frequently read pages are in memory, so a random
 * read costs little more than a sequential one.
 */
const always = { TimeZone: "UTC", random_page_cost: "1.1" }
/** For statements with array parameters: the length of an array is unknown, so the planner would replan every execution. */
const plannedOnce = { plan_cache_mode: "force_generic_plan" }
/** A statement is not cancelled when its caller is interrupted, since the outcome of a write would be unknown. */
const alone = { multiplex: true, multiplexConcurrency: 1 }
const timeout = { statement_timeout: String(Timing.statementTimeoutMillis) }
/**
 * The heartbeat of a runner is a commit that no promise depends on. If it waited for a slow disk, the runner would give up
 * its shards (`Timing.shardLockRefresh`).
 */
const withoutDisk = { synchronous_commit: "off" }

/** The maximum number of connections per client; most open only under load. The feed listens on one of `Unhurried`. */
export const poolSizes = { Reads: 6, Writes: 8, Unhurried: 3, ClusterSql: 2 }
/** The maximum number of connections of a process. */
export const connectionsPerProcess = Object.values(poolSizes).reduce((sum, size) => sum + size, 0)

const client = <I>(
  tag: Context.Key<I, PgClient.PgClient>,
  settings: ConnectionSettings,
  pool: Pick<PgClient.PgPoolConfig, "multiplex" | "multiplexConcurrency" | "maxConnections">,
  session: Readonly<Record<string, string>>,
  stream: () => Socket,
): Layer.Layer<I, SqlError.SqlError> => {
  const name = tag.key.split("/").at(-1)!
  return Layer.effectContext(Effect.map(Effect.service(PgClient.PgClient), (sql) => Context.make(tag, sql))).pipe(
    Layer.provide(
      Layer.fresh(
        SessionClient.layer({
          pool: { ...settings, applicationName: `svc:${name}`, stream, ...pool },
          settings: { ...always, ...session },
          reachability: Reachability.make(name),
        }),
      ),
    ),
  )
}

export const layer = (
  settings: ConnectionSettings,
): Layer.Layer<Reads | Writes | Unhurried | ClusterSql, SqlError.SqlError> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const lines = Line.make(settings)
      const prompt = (pool: string) => lines.opener(pool, Timing.lineSilenceMillis)
      for (const pool of Object.keys(poolSizes)) yield* lines.watched(pool)
      return Layer.mergeAll(
        client(
          Reads,
          settings,
          { ...alone, maxConnections: poolSizes.Reads },
          { ...timeout, default_transaction_read_only: "on" },
          prompt("Reads"),
        ),
        client(
          Writes,
          settings,
          { ...alone, maxConnections: poolSizes.Writes },
          { ...timeout, ...plannedOnce },
          prompt("Writes"),
        ),
        client(
          Unhurried,
          settings,
          { maxConnections: poolSizes.Unhurried },
          {},
          lines.opener("Unhurried", Timing.lineSilenceUnhurriedMillis),
        ),
        client(
          ClusterSql,
          settings,
          { maxConnections: poolSizes.ClusterSql },
          { ...timeout, ...withoutDisk },
          prompt("ClusterSql"),
        ),
      )
    }),
  )

/** Errors of a store that is unreachable, slow or restarting, with their names in metrics. All other errors are defects. */
const transient = new Map([
  ["ConnectionError", "connection"],
  ["AuthenticationError", "authentication"],
  ["StatementTimeoutError", "statement_timeout"],
  ["LockTimeoutError", "lock_timeout"],
  ["DeadlockError", "deadlock"],
  ["SerializationError", "serialization"],
])

/**
 * SQLSTATE classes of a server that is out of resources such as disk space (53), that is stopping or starting (57P), or whose
 * files fail (58). The driver has no names for them.
 */
const transientState = /^(?:53|57P|58)/
const transientMessage = /terminating connection|the database system is|too many clients|server closed|shutting down/i

const stateOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

export const isTransient = ({ reason }: SqlError.SqlError): boolean =>
  transient.has(reason._tag) ||
  transientState.test(stateOf(reason.cause)) ||
  transientMessage.test(String(reason.cause)) ||
  transientMessage.test(reason.message ?? "")

export const unavailable = () =>
  new Unavailable({ detail: "The database did not respond in time.", retry_after_seconds: 1 })

const failures = Metrics.counter(
  "svc_db_failures_total",
  "Operations that failed because the database was unavailable",
  ["reason"],
)

const failedBy = (reason: string) =>
  Effect.suspend(() => {
    failures.of(reason).n++
    return Effect.fail(unavailable())
  })

const late = () => failedBy("deadline")
const passing = ({ reason }: SqlError.SqlError) => failedBy(transient.get(reason._tag) ?? "server")

/** The deadline of a call in a batch (`Batcher.BatchLimits`). */
export const deadline = { millis: Timing.statementTimeoutMillis, late }

/**
 * Maps transient errors of the store to `unavailable`, and all others to defects. It sets no deadline, since a batch has its own.
 * A transaction that loses its connection ends with a defect of the library, because the rollback fails as well; this is
 * `unavailable` too.
 */
export const transientOnly = <A, E, R>(
  effect: Effect.Effect<A, E | SqlError.SqlError, R>,
): Effect.Effect<A, Exclude<E, SqlError.SqlError> | Unavailable, R> =>
  Effect.catchCause(effect, (cause): Effect.Effect<never, E | Unavailable> => {
    const failed = cause.reasons.find(Cause.isFailReason)?.error
    if (failed !== undefined) {
      if (!SqlError.isSqlError(failed)) return Effect.failCause(cause as Cause.Cause<E>)
      return isTransient(failed) ? passing(failed) : Effect.die(failed)
    }
    const defects = cause.reasons.filter(Cause.isDieReason).map(({ defect }) => defect)
    const transient = defects.filter(SqlError.isSqlError).find(isTransient)
    return transient !== undefined && !Cause.hasInterrupts(cause)
      ? passing(transient)
      : Effect.failCause(cause as Cause.Cause<E>)
  }) as Effect.Effect<A, Exclude<E, SqlError.SqlError> | Unavailable, R>

/**
 * {@link transientOnly} with a deadline: a store that does not respond in time is `unavailable` as well. A server that hangs does
 * not enforce `statement_timeout`.
 */
export const orUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E | SqlError.SqlError, R>,
): Effect.Effect<A, Exclude<E, SqlError.SqlError> | Unavailable, R> =>
  within(transientOnly(effect), Timing.statementTimeoutMillis, late)

/** {@link Batcher.make} for a statement whose calls fail as with {@link orUnavailable}. */
export const together = <Item, Result, E>(
  run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E | SqlError.SqlError>,
  limits: Pick<Batcher.BatchLimits<Item>, "atOnce" | "beside" | "most" | "heaviest"> = Batcher.usual,
) => Batcher.make((items: ReadonlyArray<Item>) => transientOnly(run(items)), { ...limits, deadline })

export type Sql = SqlClient.SqlClient
