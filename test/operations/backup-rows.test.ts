/**
 * Backup and restore at the store, for every table and sequence of the schema. Each table gets a row made from its
 * columns, so that a new table, sequence, queue or folder that a backup or a restore forgets is found by its name.
 */
import { createWriteStream, mkdtempSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { PgClient } from "@effect/sql-pg"
import { clients } from "@svc/cli/backup/BackupLocation"
import { load } from "@svc/cluster/backup/BackupLoader"
import { take } from "@svc/cluster/backup/BackupWriter"
import type { Manifest } from "@svc/cluster/backup/Manifest"
import * as RestoreAdjustments from "@svc/cluster/backup/RestoreAdjustments"
import * as Tables from "@svc/cluster/backup/Tables"
import { Unhurried } from "@svc/cluster/store/Database"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeDatabase, type TestDatabase } from "../harness/Database.ts"
import { everything, fill } from "../harness/GeneratedRows.ts"
import { eventually } from "../harness/Service.ts"

const folder = mkdtempSync(path.join(os.tmpdir(), "svc-backup-rows-"))
const file = path.join(folder, "backup.tar.zst")
let source: TestDatabase
let manifest: Manifest

const inDatabase = <A, E>({ settings }: TestDatabase, effect: Effect.Effect<A, E, PgClient.PgClient | Unhurried>) =>
  Effect.runPromise(Effect.provide(effect, clients(settings as never)))

const filled = Effect.flatMap(PgClient.PgClient, fill)
const allRows = Effect.flatMap(PgClient.PgClient, everything)

/** The folder of the server that both this process and the server can enter. */
const homeOf = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [row] = yield* sql<{ data_directory: string }>`show data_directory`
  return path.dirname(row!.data_directory)
})

const backUp = (to: string) => Effect.flatMap(homeOf, (home) => take(home, createWriteStream(to)))
const loadFrom = (of: Manifest) => Effect.flatMap(homeOf, (home) => load(home, file, of))

/** Runs the effect in a database of its own. */
const elsewhere = async <A, E>(effect: Effect.Effect<A, E, PgClient.PgClient | Unhurried>) => {
  const target = await makeDatabase()
  try {
    return await inDatabase(target, effect)
  } finally {
    await target.drop()
  }
}

beforeAll(async () => {
  source = await makeDatabase()
  await inDatabase(source, filled)
  manifest = await inDatabase(source, backUp(file))
})
afterAll(async () => {
  await source.drop()
  rmSync(folder, { recursive: true, force: true })
})

describe("a backup", () => {
  it("contains a row of every table, and restores it unchanged", async () => {
    expect(manifest.tables.filter(({ rows }) => rows === 0)).toEqual([])
    const restored = await elsewhere(Effect.andThen(loadFrom(manifest), allRows))
    expect(restored).toEqual(await inDatabase(source, allRows))
  })

  it("contains no row that was committed after it began", async () => {
    const other = path.join(folder, "other.tar.zst")
    const waits = "from pg_locks where not granted and relation = 'vault_secret'::regclass"
    const { counted, present } = await inDatabase(
      source,
      Effect.gen(function* () {
        const sql = yield* Unhurried
        const taking = yield* sql.withTransaction(
          Effect.gen(function* () {
            // The backup has copied the tables before this one, and waits for its lock.
            yield* sql`lock table vault_secret in access exclusive mode`
            const taking = inDatabase(source, backUp(other))
            yield* Effect.promise(() =>
              eventually(
                () =>
                  inDatabase(
                    source,
                    Effect.flatMap(Unhurried, (own) => own.unsafe(`select pid ${waits}`)),
                  ),
                ({ length }) => length > 0,
              ),
            )
            yield* sql`set local session_replication_role = replica`
            yield* sql`delete from vault_secret`
            yield* sql`delete from usage_hour`
            return taking
          }),
        )
        const { tables } = yield* Effect.promise(() => taking)
        const [row] = yield* sql<{ n: number }>`select count(*)::int as n from usage_hour`
        return { counted: tables.filter(({ rows }) => rows === 0), present: row!.n }
      }),
    )
    expect(present).toBe(0)
    expect(counted).toEqual([])
    await inDatabase(source, filled)
  })
})

describe("a restore", () => {
  it("continues every sequence beyond the numbers that may have been assigned after the backup", async () => {
    const next = await elsewhere(
      Effect.gen(function* () {
        yield* loadFrom(manifest)
        const sql = yield* PgClient.PgClient
        return yield* Effect.forEach(manifest.sequences, ({ name, last }) =>
          Effect.map(
            sql<{ next: number }>`select nextval(${Tables.quoted(name)}::regclass)::float8 as next`,
            ([row]) => [name, row!.next - last > 500_000],
          ),
        )
      }),
    )
    expect(next.length).toBeGreaterThan(0)
    expect(next).toEqual(manifest.sequences.map(({ name }) => [name, true]))
  })

  /** Queues of work that may be repeated: reading documents of agents, and letters to the operator and account holders. */
  const repeatable = new Set(["agent_claim", "grant_notice", "system_mail"])

  it("holds every queue until it is released, and changes every UIDVALIDITY", async () => {
    const columns = (name: string) =>
      Effect.flatMap(
        PgClient.PgClient,
        (sql) => sql<{ table: string }>`
          select table_name as "table" from information_schema.columns
          where table_schema = 'public' and column_name = ${name} order by 1`,
      )
    const found = (name: string, condition: string) =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        return yield* Effect.filter(yield* columns(name), ({ table }) =>
          Effect.map(
            sql.unsafe<{ n: number }>(`select count(*)::int as n from ${table} where ${name} ${condition}`),
            ([row]) => row!.n === 1,
          ),
        )
      })
    const result = await elsewhere(
      Effect.gen(function* () {
        yield* loadFrom(manifest)
        const queues = (yield* columns("next_attempt_at")).filter(({ table }) => !repeatable.has(table))
        const folders = yield* columns("uid_validity")
        // A folder that was created after the backup has a UIDVALIDITY of up to an hour more.
        const hourAgo = { taken_at: new Date(Date.now() - 3_600_000).toISOString() }
        const { held, sessions } = yield* RestoreAdjustments.arrive(hourAgo, { keepSessions: false })
        const late = yield* found("next_attempt_at", "> now() + interval '900 years'")
        const changed = yield* found("uid_validity", "> 4600")
        const counts = (rows: ReadonlyArray<{ readonly count: number }>) => rows.map(({ count }) => count)
        const released = counts(yield* RestoreAdjustments.release)
        // Rows that are not held stay due.
        const repeated = counts(yield* RestoreAdjustments.release)
        const due = (yield* found("next_attempt_at", "between now() - interval '1 year' and now()")).filter(
          ({ table }) => !repeatable.has(table),
        )
        return { queues, folders, held: counts(held), sessions, late, changed, released, repeated, due }
      }),
    )
    expect(result.queues.length).toBeGreaterThan(1)
    expect(result).toMatchObject({
      late: result.queues,
      due: result.queues,
      held: result.queues.map(() => 1),
      released: result.queues.map(() => 1),
      repeated: result.queues.map(() => 0),
      changed: result.folders,
      sessions: 1,
    })
  })

  it.each([-1, 1])("that finds a number of rows other than the backup's (%i) changes nothing", async (more) => {
    const tables = manifest.tables.map((table) =>
      table.name === "usage_hour" ? { ...table, rows: table.rows + more } : table,
    )
    const { error, left } = await elsewhere(
      Effect.gen(function* () {
        const error = yield* Effect.flip(loadFrom({ ...manifest, tables }))
        return { error, left: (yield* allRows)["identity"] }
      }),
    )
    expect(error).toMatchObject({ _tag: "BackupFailed", message: expect.stringContaining("usage_hour") })
    expect(left).toEqual([])
  })

  it("of a later version's backup changes nothing, and names the unknown migrations", async () => {
    const { error, left } = await elsewhere(
      Effect.gen(function* () {
        const error = yield* Effect.flip(loadFrom({ ...manifest, migrations: [...manifest.migrations, 7001] }))
        return { error, left: (yield* allRows)["identity"] }
      }),
    )
    expect(error).toMatchObject({ _tag: "BackupFailed", message: expect.stringMatching(/later program .* 7001/) })
    expect(left).toEqual([])
  })

  it("whose rows reference missing rows is refused with the name of the foreign key", async () => {
    const error = await elsewhere(
      Effect.gen(function* () {
        yield* filled
        const sql = yield* PgClient.PgClient
        yield* sql`set session_replication_role = replica`
        yield* sql`delete from vault_secret`
        const torn = path.join(folder, "torn.tar.zst")
        const manifest = yield* backUp(torn)
        return yield* Effect.flip(Effect.flatMap(homeOf, (home) => load(home, torn, manifest)))
      }),
    )
    expect(error.message).toMatch(/reference missing rows \(vault_\w+_fkey\)/)
  })
})
