/**
 * The oldest running transaction. Lists and streams of Events and audit records stop before rows that a running transaction may
 * still precede. Transaction ids are shared by all databases of a PostgreSQL cluster, so a long transaction in any of them delays
 * these lists, even an unrelated one or a prepared transaction that was forgotten.
 */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect, Layer } from "effect"
import { collect } from "../observe/Collectors.ts"
import * as Metrics from "../observe/Metrics.ts"
import { Reads, type Sql } from "./Database.ts"

const held = Metrics.gauge(
  "svc_store_held_seconds",
  "How long a transaction that writes has held back lists of Events and audit records",
  [],
)

interface Horizon {
  /** The oldest running transaction. */
  readonly xid: string
  /** Whether newer transactions exist, which wait for it. */
  readonly holds: boolean
  /** Null without permission to read it (the role pg_read_all_stats). */
  readonly seconds: number | null
}

/**
 * Returns for how many seconds lists have been held back, or 0. If PostgreSQL does not disclose when the transaction of another
 * user started, the time counts from when the transaction was first observed.
 */
export const makeHeld = (sql: Sql) => {
  let seen: { readonly xid: string; readonly at: number } | undefined
  return Effect.gen(function* () {
    const [horizon] = yield* sql<Horizon>`
      select pg_snapshot_xmin(s)::text as xid, pg_snapshot_xmin(s) < pg_snapshot_xmax(s) as holds, (
        select extract(epoch from clock_timestamp() - min(began))::float8 from (
          select xact_start as began from pg_stat_activity where backend_xid = pg_snapshot_xmin(s)::xid
          union all select prepared from pg_prepared_xacts where transaction = pg_snapshot_xmin(s)::xid
        ) a
      ) as seconds
      from pg_current_snapshot() s`
    const { xid, holds, seconds } = horizon!
    const now = yield* monotonicMillis
    if (!holds) {
      seen = undefined
      return 0
    }
    if (seen?.xid !== xid) seen = { xid, at: now }
    return Math.max(0, seconds ?? (now - seen.at) / 1000)
  })
}

export const layer = Layer.unwrap(
  Effect.map(Reads, (sql) => collect(Effect.map(makeHeld(sql), (seconds) => held.set([], seconds)))),
)

/** A running transaction that has written. */
interface Writer {
  /** Null for a prepared transaction. */
  readonly pid: number | null
  readonly user: string | null
  readonly database: string | null
  /** The `application_name`, or the id of a prepared transaction. */
  readonly program: string
  /** Null without permission to read it. */
  readonly seconds: number | null
}

/** Returns the oldest writing transaction of the PostgreSQL cluster besides this session, or undefined. */
export const oldestWriter = (sql: Sql) =>
  Effect.map(
    sql<Writer>`
      select pid, usename::text as user, datname::text as database, coalesce(application_name, '') as program,
             extract(epoch from clock_timestamp() - xact_start)::float8 as seconds
      from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()
      union all
      select null, owner::text, database::text, gid, extract(epoch from clock_timestamp() - prepared)::float8
      from pg_prepared_xacts
      order by seconds desc nulls last limit 1`,
    ([row]) => row,
  )
