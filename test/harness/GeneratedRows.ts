/** Rows made from the columns of a table, for tests that cover every table. */
import type { Sql } from "@svc/cluster/store/Database"
import * as Tables from "@svc/cluster/backup/Tables"
import { Effect } from "effect"

export interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
  /** The first value that a check allows. */
  readonly allowed: string | null
}

/** Returns the columns of all tables that a row needs, and those named `more`. */
export const neededColumns = (sql: Sql, more: ReadonlyArray<string> = []) => sql<Column>`
  select c.relname as "table", a.attname as name, t.typname as type,
         (select (regexp_match(pg_get_constraintdef(k.oid), '''([^'']+)''::text'))[1] from pg_constraint k
          where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum] limit 1) as allowed
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  join pg_type t on t.oid = a.atttypid
  where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
    and (a.attnotnull and not a.atthasdef and a.attidentity = '' or a.attname = any(${more}::text[]))`

/** One value for each type; `id` is a UUID and `n` a number. */
const values = (id: string, n: number): Readonly<Record<string, string>> => ({
  bool: "false",
  bytea: `decode(lpad(to_hex(${n}), 128, '0'), 'hex')`,
  date: "current_date",
  int4: `${n}`,
  int8: `${n}`,
  jsonb: "'{}'",
  text: `'x${n}'`,
  timestamptz: "now()",
  uuid: `'${id}'`,
  _text: "'{}'",
})

/** Returns the SQL of a value that the column accepts. */
export const valueOf = ({ allowed, type }: Column, id: string, n: number): string =>
  allowed === null ? values(id, n)[type]! : `'${allowed}'`

/** Runs the effect without foreign keys and triggers. */
export const withoutReferences = <A, E, R>(sql: Sql, effect: Effect.Effect<A, E, R>) =>
  sql.withTransaction(Effect.andThen(sql`set local session_replication_role = replica`, effect))

/** The id of all rows of {@link fill}, so that every foreign key finds its row. */
export const filledId = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99"

/** Adds a row to every empty table. Queued rows are due now. */
export const fill = Effect.fnUntraced(function* (sql: Sql) {
  const columns = yield* neededColumns(sql, ["next_attempt_at"])
  yield* withoutReferences(
    sql,
    Effect.gen(function* () {
      for (const { name } of yield* Tables.tables(sql)) {
        const own = columns.filter(({ table }) => table === name)
        yield* sql.unsafe(
          `insert into ${name} (${own.map((one) => Tables.quoted(one.name)).join()})
           select ${own.map((one) => valueOf(one, filledId, 1)).join()} where not exists (select from ${name})`,
        )
      }
    }),
  )
  for (const [at, { name }] of (yield* Tables.sequences(sql)).entries()) {
    yield* sql`select setval(${Tables.quoted(name)}::regclass, ${1_000 + at}::bigint)`
  }
})

/** Returns every row of every table as text, without transaction numbers. */
export const everything = Effect.fnUntraced(function* (sql: Sql) {
  const found: Record<string, ReadonlyArray<string>> = {}
  for (const { name, columns } of yield* Tables.tables(sql)) {
    const rows = yield* sql.unsafe<{ row: string }>(
      `select row(${columns.map(Tables.quoted).join()})::text as row from ${name} order by 1`,
    )
    found[name] = rows.map(({ row }) => row)
  }
  return found
})
