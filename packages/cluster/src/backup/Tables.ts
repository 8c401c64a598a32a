/**
 * Lists the tables and sequences of the store from its own catalogue. The only tables named here are those that are not
 * backed up.
 */
import { Effect } from "effect"
import type { Sql } from "../store/Database.ts"

/** Tables of running processes, and the migration history, which migrations write themselves. */
const left = (sql: Sql) => sql`(c.relname like 'cluster\\_%' or c.relname = 'svc_migrations')`

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

export interface Stored {
  readonly name: string
  readonly columns: ReadonlyArray<string>
}

/**
 * Returns every table with its writable columns; a partitioned table is one. Transaction numbers are left out, because
 * in another server they might be in the future: a restored row gets the number of the restore.
 */
export const tables = (sql: Sql) =>
  sql<Stored>`
    select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      and a.atttypid <> 'xid8'::regtype
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace and not ${left(sql)}
    group by c.relname order by c.relname`

/** Returns the last number that each sequence assigned, at least. */
export const sequences = (sql: Sql) =>
  sql<{ name: string; last: number }>`
    select sequencename as name, coalesce(last_value, 0)::float8 as last from pg_sequences
    where schemaname = 'public' and sequencename not like 'cluster\\_%' order by sequencename`

export const migrations = (sql: Sql) =>
  Effect.map(sql<{ id: number }>`select migration_id as id from svc_migrations order by migration_id`, (rows) =>
    rows.map(({ id }) => id),
  )

interface ForeignKey {
  readonly name: string
  readonly child: string
  readonly parent: string
  readonly child_columns: ReadonlyArray<string>
  readonly parent_columns: ReadonlyArray<string>
}

/** Returns the names of foreign keys that some row violates; copied rows are not checked otherwise. */
export const brokenKeys = Effect.fnUntraced(function* (sql: Sql) {
  const keys = yield* sql<ForeignKey>`
    select k.conname as name, k.conrelid::regclass::text as child, k.confrelid::regclass::text as parent,
      array(select a.attname::text from unnest(k.conkey) with ordinality u (n, o)
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.n order by u.o) as child_columns,
      array(select a.attname::text from unnest(k.confkey) with ordinality u (n, o)
        join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.n order by u.o) as parent_columns
    from pg_constraint k where k.contype = 'f' and k.connamespace = 'public'::regnamespace`
  const broken: Array<string> = []
  for (const { name, child, parent, child_columns, parent_columns } of keys) {
    const pairs = child_columns.map((column, at) => `p.${quoted(parent_columns[at]!)} = c.${quoted(column)}`)
    const present = child_columns.map((column) => `c.${quoted(column)} is not null`)
    const [row] = yield* sql.unsafe<{ found: boolean }>(
      `select exists (select from ${child} c where ${present.join(" and ")}
        and not exists (select from ${parent} p where ${pairs.join(" and ")})) as found`,
    )
    if (row?.found === true) broken.push(name)
  }
  return broken
})
