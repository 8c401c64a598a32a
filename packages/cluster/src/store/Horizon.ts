/**
 * What holds back lists of Events and audit records, and the streams: they leave out what a running transaction may come
 * before, and numbers of transactions are of the whole PostgreSQL cluster. So whoever writes in any of its databases and
 * does not end holds them back, also one that has nothing to do with the service, and one that was prepared and forgotten.
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
  /** The transaction that everything after waits for. */
  readonly xid: string
  /** Something was written since. */
  readonly holds: boolean
  /** Null where it is not ours to see, which takes the role pg_read_all_stats. */
  readonly seconds: number | null
}

/**
 * Seconds that something has been held back; 0 while nothing is. Where PostgreSQL does not show us when a transaction of
 * another user began, it counts from the first time that it was seen.
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

/** A transaction that writes and has not ended. */
export interface Writer {
  /** Null for one that was prepared. */
  readonly pid: number | null
  readonly user: string | null
  readonly database: string | null
  /** What its program calls itself, or the name under which it was prepared. */
  readonly program: string
  /** Null where it is not ours to see. */
  readonly seconds: number | null
}

/** The one of the whole cluster that has written for longest; undefined where nobody writes but us. */
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
