/** Metrics of the embedded database: the sizes of its tables, and the time of the last backup. */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect } from "effect"
import { Reads } from "./Database.ts"
import { Timing } from "../Timing.ts"
import { collect } from "../observe/Collectors.ts"
import * as Metrics from "../observe/Metrics.ts"

const sizes = Metrics.gauge("svc_store_bytes", "Sizes of the tables with their indexes, measured every five minutes", [
  "table",
])
const backedUp = Metrics.gauge(
  "svc_backup_last_success_timestamp_seconds",
  "When a backup last succeeded, since the epoch; 0 for never",
  [],
)

const update = () => {
  let measuredAt = Number.NEGATIVE_INFINITY
  return Effect.gen(function* () {
    const sql = yield* Reads
    const [row] = yield* sql<{ at: Date | null }>`select max(finished_at) as at from backup`
    backedUp.set([], (row?.at?.getTime() ?? 0) / 1000)
    const now = yield* monotonicMillis
    if (now - measuredAt < Timing.tableSizesMillis) return
    measuredAt = now
    const tables = yield* sql<{ name: string; bytes: number }>`
      select relname as name, pg_total_relation_size(oid)::float8 as bytes from pg_class
      where relkind = 'r' and relnamespace = 'public'::regnamespace`
    for (const { name, bytes } of tables) sizes.set([name], bytes)
  })
}

export const layer = collect(update())
