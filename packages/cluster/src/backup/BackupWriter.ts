/**
 * Backs up the embedded database while it serves: every table in one snapshot, by the server's COPY. Master keys are
 * never included; sealed values stay sealed, and the manifest names the keys that open them.
 */
import { createHash } from "node:crypto"
import type { Writable } from "node:stream"
import { PgClient } from "@effect/sql-pg"
import { apiVersion } from "@svc/domain/Version"
import { Cause, Clock, Effect } from "effect"
import { SqlError } from "effect/sql"
import { keysInUse } from "../sealing/Rotation.ts"
import type { Sql } from "../store/Database.ts"
import * as Archive from "./Archive.ts"
import { BackupFailed, failedAs, type Manifest, manifestName, memberOf, type Table } from "./Manifest.ts"
import * as Spool from "./Spool.ts"
import * as Tables from "./Tables.ts"

/** Bytes per member, which is the part of a table that is held in memory. */
const memberBytes = 8 * 1024 * 1024

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

/** Joins chunks to at least this size, except the last. */
async function* gathered(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting: Array<Buffer> = []
  let held = 0
  for await (const chunk of chunks) {
    waiting.push(chunk)
    held += chunk.length
    if (held < memberBytes) continue
    yield Buffer.concat(waiting)
    waiting = []
    held = 0
  }
  if (held > 0) yield Buffer.concat(waiting)
}

/** Returns the members of every table, and the manifest last. */
async function* members(
  sql: Sql,
  run: Run,
  pipe: string,
  stored: ReadonlyArray<Tables.Stored>,
  about: Omit<Manifest, "tables">,
  done: (manifest: Manifest) => void,
): AsyncGenerator<Archive.Member> {
  const tables: Array<Table> = []
  for (const { name, columns } of stored) {
    const list = columns.map(Tables.quoted).join(", ")
    const copying = run(sql.unsafe(`copy (select ${list} from ${Tables.quoted(name)}) to '${pipe}' (format binary)`))
    const hash = createHash("sha256")
    let [bytes, at] = [0, 0]
    for await (const portion of gathered(Spool.received(pipe, copying))) {
      hash.update(portion)
      bytes += portion.length
      yield { name: memberOf(name, at++), bytes: portion }
    }
    const [counted] = await run(sql.unsafe<{ n: number }>(`select count(*)::float8 as n from ${Tables.quoted(name)}`))
    tables.push({ name, columns, rows: counted!.n, bytes, sha256: hash.digest("hex") })
  }
  const manifest = { ...about, tables }
  yield { name: manifestName, bytes: Buffer.from(JSON.stringify(manifest, null, 2)) }
  done(manifest)
}

const failed = failedAs("The backup failed")

/** Backs up the database of the server in `home` and returns the manifest. */
export const take = Effect.fn("Backup.take")(
  function* (home: string, out: Writable) {
    const sql = yield* PgClient.PgClient
    const pipe = yield* Spool.pipe(home)
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`set transaction isolation level repeatable read, read only`
        const [server] = yield* sql<{ version: string }>`select current_setting('server_version') as version`
        const [canary] = yield* sql<{ sealed: Uint8Array }>`select sealed from sealing_canary where id = 1`
        const about = {
          format: 1 as const,
          program: apiVersion,
          postgres: server!.version,
          migrations: yield* Tables.migrations(sql),
          taken_at: new Date(yield* Clock.currentTimeMillis).toISOString(),
          master_keys: yield* keysInUse(sql),
          canary: canary === undefined ? null : Buffer.from(canary.sealed).toString("base64"),
          sequences: yield* Tables.sequences(sql),
        }
        const stored = yield* Tables.tables(sql)
        const run: Run = Effect.runPromiseWith(yield* Effect.context<never>())
        return yield* Effect.tryPromise({
          try: async () => {
            let manifest: Manifest | undefined
            await Archive.write(
              members(sql, run, pipe, stored, about, (made) => (manifest = made)),
              out,
            )
            return manifest!
          },
          catch: failed,
        })
      }),
    )
  },
  Effect.scoped,
  // If the connection is lost, the rollback fails too, and the library turns both into a defect.
  Effect.catchCause((cause) => {
    const error = Cause.squash(cause)
    return error instanceof BackupFailed || SqlError.isSqlError(error)
      ? Effect.fail(failed(error))
      : Effect.failCause(cause as Cause.Cause<never>)
  }),
)
