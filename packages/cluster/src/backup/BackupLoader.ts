/**
 * Restores a backup into an empty store: first the schema of the backup, then all rows in one transaction, then a check
 * of every foreign key, then the schema of this version. The restore is complete or has no effect.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { migrate, migrateTo } from "../store/Migrations.ts"
import type { Sql } from "../store/Database.ts"
import * as Archive from "./Archive.ts"
import { BackupFailed, failedAs, type Manifest, type Table, tableOf } from "./Manifest.ts"
import * as Spool from "./Spool.ts"
import * as Tables from "./Tables.ts"

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

/** Numbers assigned after the snapshot must not be assigned again, so each sequence continues after this gap. */
const sequenceGap = 1_000_000

const failed = failedAs("The rows cannot be restored")

/** Copies the tables in the order of the file. */
const copyAll = async (sql: Sql, run: Run, pipe: string, file: string, tables: ReadonlyMap<string, Table>) => {
  const members = Archive.read(file)
  let next = await members.next()
  /** Returns the members of one table and leaves the next one unread. */
  async function* rowsOf(table: string): AsyncGenerator<Buffer> {
    while (next.done !== true && tableOf(next.value.name) === table) {
      yield next.value.bytes
      next = await members.next()
    }
  }
  try {
    while (next.done !== true) {
      const name = tableOf(next.value.name)
      if (name === undefined) {
        next = await members.next()
        continue
      }
      const columns = tables.get(name)!.columns.map(Tables.quoted).join(", ")
      const copying = run(sql.unsafe(`copy ${Tables.quoted(name)} (${columns}) from '${pipe}' (format binary)`))
      await Spool.sent(pipe, copying, rowsOf(name))
    }
  } finally {
    await members.return(undefined)
  }
}

const counted = Effect.fnUntraced(function* (sql: Sql, { tables }: Manifest) {
  for (const { name, rows } of tables) {
    const [found] = yield* sql.unsafe<{ n: number }>(`select count(*)::float8 as n from ${Tables.quoted(name)}`)
    if (found!.n !== rows) {
      return yield* new BackupFailed({ message: `The table ${name} has ${found!.n} rows, and the backup ${rows}.` })
    }
  }
})

const rowsIn = Effect.fnUntraced(function* (home: string, file: string, manifest: Manifest) {
  const sql = yield* PgClient.PgClient
  const pipe = yield* Spool.pipe(home)
  const present = yield* Tables.tables(sql)
  yield* sql.withTransaction(
    Effect.gen(function* () {
      // Disables triggers and foreign keys, because the rows were valid in the source.
      yield* sql`set local session_replication_role = replica`
      yield* sql.unsafe(`truncate ${present.map(({ name }) => Tables.quoted(name)).join(", ")}`)
      const run: Run = Effect.runPromiseWith(yield* Effect.context<never>())
      const tables = new Map(manifest.tables.map((table) => [table.name, table]))
      yield* Effect.tryPromise({ try: () => copyAll(sql, run, pipe, file, tables), catch: failed })
      yield* counted(sql, manifest)
      const broken = yield* Tables.brokenKeys(sql)
      if (broken.length > 0) {
        return yield* new BackupFailed({ message: `Rows of the backup reference missing rows (${broken.join(", ")}).` })
      }
      for (const { name, last } of manifest.sequences) {
        yield* sql`select setval(${Tables.quoted(name)}::regclass, ${last + sequenceGap}::bigint)`
      }
    }),
  )
}, Effect.scoped)

/** Fills the empty database of the server in `home`. The file was inspected and its keys were tested. */
export const load = Effect.fn("Backup.load")(
  function* (home: string, file: string, manifest: Manifest) {
    const sql = yield* PgClient.PgClient
    const unknown = yield* migrateTo(manifest.migrations)
    if (unknown.length > 0) {
      return yield* new BackupFailed({
        message: `The backup was made by a later program (${manifest.program}): this one does not know its migrations ${unknown.join(", ")}. Restore with that version or a later one.`,
      })
    }
    yield* rowsIn(home, file, manifest)
    yield* migrate
    yield* sql`analyze`
  },
  Effect.catchTag("SqlError", (error) => Effect.fail(failed(error))),
)
