/** Rows made from the columns of a table, for tests that cover every table. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

export interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
  /** The first value that a check allows. */
  readonly allowed: string | null
}

/** Returns the columns of all tables that a row needs, and those named `more`. */
export const neededColumns = (sql: PgClient.PgClient, more: ReadonlyArray<string> = []) => sql<Column>`
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
export const withoutReferences = <A, E, R>(sql: PgClient.PgClient, effect: Effect.Effect<A, E, R>) =>
  sql.withTransaction(Effect.andThen(sql`set local session_replication_role = replica`, effect))
