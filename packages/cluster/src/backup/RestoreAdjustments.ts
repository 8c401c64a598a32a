/**
 * Adjusts a restored store to what happened after the snapshot: mail programs have seen UIDs that will be assigned
 * again, queued deliveries and outgoing mail may have been sent, and revoked keys are valid again. The affected tables
 * are listed here; a capability with such rows adds a line.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Sql } from "../store/Database.ts"
import type { Manifest } from "./Manifest.ts"

/** Columns by which mail programs recognize that UIDs were reassigned (RFC 9051 section 2.3.1.1). */
const validities = [
  { table: "mailbox", column: "uid_validity" },
  { table: "folder", column: "uid_validity" },
] as const

/** Rows that are sent when they are due. They are postponed by a thousand years until an operator releases them. */
const departures = [
  { what: "deliveries", table: "delivery", due: "next_attempt_at" },
  { what: "outgoing messages", table: "outbox", due: "next_attempt_at" },
] as const

const held = "1000 years"
/** No other row is due this late. */
const isHeld = "900 years"

const exists = (sql: Sql, table: string) =>
  Effect.map(sql<{ found: boolean }>`select to_regclass(${table}) is not null as found`, ([row]) => row?.found === true)

interface Held {
  readonly what: string
  readonly count: number
}

const move = Effect.fnUntraced(function* (sql: Sql, set: string, where: string) {
  const moved: Array<Held> = []
  for (const { what, table, due } of departures) {
    if (!(yield* exists(sql, table))) continue
    const [row] = yield* sql.unsafe<{ n: number }>(
      `with moved as (update ${table} set ${due} = ${due} ${set} where ${due} ${where} returning 1)
       select count(*)::float8 as n from moved`,
    )
    moved.push({ what, count: row!.n })
  }
  return moved
})

/** Releases the rows that a restore held. */
export const release = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  return yield* move(sql, `- interval '${held}'`, `> now() + interval '${isHeld}'`)
})

export interface Arrived {
  readonly held: ReadonlyArray<Held>
  readonly sessions: number
}

/** Runs once after the rows were restored and before the service starts. */
export const arrive = Effect.fn("TimeTravel.arrive")(function* (
  { taken_at }: Pick<Manifest, "taken_at">,
  { keepSessions }: { readonly keepSessions: boolean },
) {
  const sql = yield* PgClient.PgClient
  const now = yield* Clock.currentTimeMillis
  // Higher than any value assigned since, and different from another restore of the same file.
  const further = Math.max(0, Math.round((now - Date.parse(taken_at)) / 1000)) + 1000
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      for (const { table, column } of validities) {
        if (yield* exists(sql, table)) yield* sql.unsafe(`update ${table} set ${column} = ${column} + ${further}`)
      }
      const moved = yield* move(sql, `+ interval '${held}'`, "is not null")
      const [sessions] = keepSessions
        ? []
        : yield* sql<{
            n: number
          }>`with gone as (delete from session returning 1) select count(*)::float8 as n from gone`
      const arrived: Arrived = { held: moved, sessions: sessions?.n ?? 0 }
      return arrived
    }),
  )
})
