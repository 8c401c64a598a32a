/**
 * The PostgreSQL clients, each with its own connections because they want different things of them: reads change nothing;
 * a write waits for the disk; migrations and exports may run long; the cluster's own storage must not queue behind any of
 * them (its lock session proves shard ownership).
 *
 * Nothing shares a connection with another statement that is under way. PostgreSQL runs those of one connection one after the
 * other, and the pool gives the connection that was used last until it is full: of statements that may share one, all would
 * wait for the slowest, a look-up for somebody's search, a write for the commits before it.
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

/** Statements that change nothing. */
export class Reads extends Context.Service<Reads, PgClient.PgClient>()("@svc/cluster/store/Reads") {}
/** Statements and transactions that change something. */
export class Writes extends Context.Service<Writes, PgClient.PgClient>()("@svc/cluster/store/Writes") {}
/** Work that may take longer than a request may wait: migrations, batches, exports. */
export class Unhurried extends Context.Service<Unhurried, PgClient.PgClient>()("@svc/cluster/store/Unhurried") {}
/** The cluster library's storage of runners and shard locks. */
export class ClusterSql extends Context.Service<ClusterSql, PgClient.PgClient>()("@svc/cluster/store/ClusterSql") {}

/**
 * Every session: dates are those of UTC, whatever the server's time zone is. What is read often is in memory, so a row by
 * its index costs little more than one in turn.
 */
const always = { TimeZone: "UTC", random_page_cost: "1.1" }
/** What takes arrays, for whose unknown length the planner would make a plan anew at every run. */
const plannedOnce = { plan_cache_mode: "force_generic_plan" }
/** A statement is not cancelled when its caller goes: what became of a write would not be known. */
const alone = { multiplex: true, multiplexConcurrency: 1 }
const timeout = { statement_timeout: String(Timing.statementTimeoutMillis) }

/**
 * The most connections that each client opens; most of them are opened only under load. One of the unhurried is the feed's,
 * which listens.
 */
export const poolSizes = { Reads: 6, Writes: 8, Unhurried: 3, ClusterSql: 2 }
/** The most connections that a process opens. */
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
        client(ClusterSql, settings, { maxConnections: poolSizes.ClusterSql }, timeout, prompt("ClusterSql")),
      )
    }),
  )

/** What the store being out of reach, slow or restarted looks like, as metrics say it; anything else is a defect of ours. */
const transient = new Map([
  ["ConnectionError", "connection"],
  ["AuthenticationError", "authentication"],
  ["StatementTimeoutError", "statement_timeout"],
  ["LockTimeoutError", "lock_timeout"],
  ["DeadlockError", "deadlock"],
  ["SerializationError", "serialization"],
])

/**
 * SQLSTATE classes of a server that is out of resources, its disk full for one (53), that stops or starts (57P), or whose
 * files fail it (58); the driver names none of them.
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
  new Unavailable({ detail: "The database did not answer in time.", retry_after_seconds: 1 })

const failures = Metrics.counter("svc_db_failures_total", "Work that the database did not do, for now", ["reason"])

const failedBy = (reason: string) =>
  Effect.suspend(() => {
    failures.of(reason).n++
    return Effect.fail(unavailable())
  })

const late = () => failedBy("deadline")
const passing = ({ reason }: SqlError.SqlError) => failedBy(transient.get(reason._tag) ?? "server")

/** How long a call of a batch waits for the store, and what it gets then (`Batcher.BatchLimits`). */
export const deadline = { millis: Timing.statementTimeoutMillis, late }

/**
 * A store out of reach is `unavailable`; any other failure is a defect. Without a deadline: the batch has one. A
 * transaction whose connection goes ends in a defect of the library's, since its rollback could not be sent either: that
 * is the store out of reach like any other.
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
    const gone = defects.filter(SqlError.isSqlError).find(isTransient)
    return gone !== undefined && !Cause.hasInterrupts(cause) ? passing(gone) : Effect.failCause(cause as Cause.Cause<E>)
  }) as Effect.Effect<A, Exclude<E, SqlError.SqlError> | Unavailable, R>

/**
 * Queries as operations see them: a store out of reach, or one that does not answer in time (a server that hangs
 * enforces no timeout of its own), is `unavailable`; any other failure is a defect.
 */
export const orUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E | SqlError.SqlError, R>,
): Effect.Effect<A, Exclude<E, SqlError.SqlError> | Unavailable, R> =>
  within(transientOnly(effect), Timing.statementTimeoutMillis, late)

/** {@link Batcher.make} of a statement, each call of it as {@link orUnavailable} would have it. */
export const together = <Item, Result, E>(
  run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E | SqlError.SqlError>,
  limits: Pick<Batcher.BatchLimits<Item>, "atOnce" | "beside" | "most" | "heaviest"> = Batcher.usual,
) => Batcher.make((items: ReadonlyArray<Item>) => transientOnly(run(items)), { ...limits, deadline })

export type Sql = SqlClient.SqlClient
