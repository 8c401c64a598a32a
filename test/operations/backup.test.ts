/** A backup whose process or database ends while it runs (docs/crash-matrix.md), with real processes and their own database. */
import { spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { PgClient } from "@effect/sql-pg"
import { clients } from "@svc/cli/backup/BackupLocation"
import * as TakeBackup from "@svc/cli/backup/TakeBackup"
import { inspect } from "@svc/cluster/backup/Manifest"
import { Unhurried } from "@svc/cluster/store/Database"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import * as Migrations from "@svc/cluster/store/Migrations"
import { ConfigProvider, Effect, Option } from "effect"
import { afterAll, expect, it } from "vitest"
import { eventually } from "../harness/Service.ts"

const program = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.mjs")
const root = mkdtempSync(path.join(os.tmpdir(), "svc-backup-"))
const [directory, folder] = [path.join(root, "data"), path.join(root, "backups")]
for (const one of [root, directory, folder]) {
  mkdirSync(one, { recursive: true })
  chmodSync(one, 0o755)
}
afterAll(() => rmSync(root, { recursive: true, force: true }))

const env = { SVC_DATA_DIR: directory }
const take = (target: string) =>
  TakeBackup.run(target, Option.none()).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))

it("a backup whose process or database fails leaves no file behind, and the next backup is complete", async () => {
  const waiting = "from pg_locks where not granted and relation = 'vault_secret'::regclass"
  const work = Effect.gen(function* () {
    yield* Migrations.migrate
    const [sql, other] = [yield* PgClient.PgClient, yield* Unhurried]
    const comes = Effect.promise(() =>
      eventually(
        () => Effect.runPromise(other.unsafe(`select pid ${waiting}`)),
        ({ length }) => length > 0,
      ),
    )
    const close = other.unsafe(`select pg_terminate_backend(pid) ${waiting}`)
    yield* sql.withTransaction(
      Effect.gen(function* () {
        // Both processes reach this table and wait for its lock.
        yield* sql`lock table vault_secret in access exclusive mode`
        const child = spawn(process.execPath, [program, "backup", path.join(folder, "killed")], {
          env: { ...process.env, ...env },
          stdio: "ignore",
        })
        yield* comes
        child.kill("SIGKILL")
        yield* close
        yield* Effect.promise(() =>
          eventually(
            async () => child.signalCode,
            (signal) => signal !== null,
          ),
        )
        const taking = Effect.runPromise(Effect.flip(take(path.join(folder, "failed"))))
        yield* comes
        yield* close
        expect(yield* Effect.promise(() => taking)).toMatchObject({ _tag: "BackupFailed" })
      }),
    )
    expect(readdirSync(folder)).toEqual(["killed.part"])
    const part = path.join(folder, "killed.part")
    expect(yield* Effect.flip(inspect(part))).toMatchObject({ _tag: "BackupFailed" })
    yield* take(path.join(folder, "killed"))
    expect(readdirSync(folder)).toEqual(["killed"])
    const { tables } = yield* inspect(path.join(folder, "killed"))
    expect(tables.map(({ name }) => name)).toContain("vault_secret")
  })
  await Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(EmbeddedPostgres.open({ directory }), ({ connection }) =>
        Effect.provide(work, clients(connection)),
      ),
    ),
  )
})

it("a backup is readable only by its owner, while it is written and when it is complete", async () => {
  const file = path.join(root, "private.tar.zst")
  const modes: Array<number> = []
  const written = TakeBackup.whole(file, (out) =>
    Effect.promise(async () => {
      modes.push(statSync(`${file}.part`).mode & 0o777)
      await new Promise<void>((resolve) => out.end("content", () => resolve()))
      return {} as never
    }),
  )
  await Effect.runPromise(written)
  modes.push(statSync(file).mode & 0o777)
  expect(modes).toEqual([0o600, 0o600])
})
