/**
 * Compares the tables of the database's own catalogue with those that capabilities declare: how their rows are deleted with an
 * account or an Identity, and whether the account holder gets them in an export.
 */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { expect, layer } from "@effect/vitest"
import * as Tables from "@svc/cluster/backup/Tables"
import { capabilities, serviceTables } from "@svc/cluster/capabilities/Capabilities"
import type { Capability, Table } from "@svc/cluster/Capability"
import { Unhurried } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import { databaseLayer } from "../harness/Database.ts"
import { fill, filledId, withoutReferences } from "../harness/GeneratedRows.ts"

const cluster = path.join(import.meta.dirname, "..", "..", "packages", "cluster", "src")
const declared: ReadonlyArray<Capability> = capabilities
const owners: Readonly<Record<string, Table>> = Object.assign(
  {},
  serviceTables,
  ...declared.map(({ tables }) => tables),
)

/** Tables of the cluster library, which belong to running processes. */
const isOfTheCluster = (table: string) => table.startsWith("cluster_")

layer(databaseLayer)("every table of the schema", (it) => {
  const present = Effect.gen(function* () {
    const sql = yield* Unhurried
    const rows = yield* sql<{ name: string }>`
      select t.table_name::text as name from information_schema.tables t
      join pg_class c on c.relname = t.table_name and c.relnamespace = 'public'::regnamespace
      where t.table_schema = 'public' and t.table_type = 'BASE TABLE' and not c.relispartition order by 1`
    return rows.map(({ name }) => name).filter((name) => !isOfTheCluster(name))
  })

  it.effect("belongs to exactly one capability, or to the service", () =>
    Effect.gen(function* () {
      const tables = yield* present
      expect(
        tables.filter((name) => owners[name] === undefined),
        "tables without an owner: add them to `tables` in packages/cluster/src/<folder>/<Name>Capability.ts",
      ).toEqual([])
      const names = [serviceTables, ...declared.map((capability) => capability.tables)].flatMap(Object.keys)
      expect(
        names.toSorted(),
        "tables that do not exist, or that two records in packages/cluster/src/*/*Capability.ts declare",
      ).toEqual(tables)
    }),
  )

  it.effect("is erased as its owner declares", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const keys = yield* sql<{ child: string; parent: string }>`
        select conrelid::regclass::text as child, confrelid::regclass::text as parent from pg_constraint
        where contype = 'f' and confdeltype = 'c' and connamespace = 'public'::regnamespace`
      const cascades = (name: string): boolean =>
        name === "org" ||
        name === "identity" ||
        name === "message" ||
        keys.some(({ child, parent }) => child === name && parent !== name && cascades(parent))
      // Every table has a row of another account and Identity, which stays.
      yield* fill(sql)
      for (const name of ["event", "export", "usage_hour", "vault_secret"])
        yield* sql`update ${sql(name)} set identity_id = ${filledId}`
      const other = yield* makeUuidV7
      const batchOf = (name: string, id: string) => {
        const erased = owners[name]?.erased
        return typeof erased === "object" && "inBatches" in erased ? erased.inBatches(sql, id, 1) : undefined
      }
      const kept: Array<string> = []
      for (const [name, { erased }] of Object.entries(owners)) {
        if (erased === "cascade") expect(cascades(name), `${name}: no foreign key cascades; declare batches`).toBe(true)
        else if ("inBatches" in erased || "together" in erased) {
          const table = "together" in erased ? erased.together : name
          const batch = batchOf(table, other)
          expect(batch?.compile()[0], `${name}: its batches do not delete it`).toContain(`delete from ${name} `)
          expect(yield* batch!, `${name}: its batches delete rows of others`).toEqual([{ n: 0 }])
          // The row counts once: `together` names a table whose batch deletes rows of two.
          if (table === name) {
            const [own] = yield* withoutReferences(sql, batchOf(name, filledId)!)
            if (own?.n !== 1) kept.push(name)
          }
        } else if ("by" in erased) {
          const text = readFileSync(path.join(cluster, erased.by), "utf8")
          expect(text, `${name}: ${erased.by} does not delete it`).toContain(erased.statement)
        }
      }
      expect(kept, "tables whose batches do not delete the row of the Identity").toEqual([])
      // Tables that name an account or an Identity and are kept after its deletion, each for a known reason.
      const named = yield* sql<{ name: string }>`
        select distinct table_name::text as name from information_schema.columns
        where table_schema = 'public' and column_name in ('org_id', 'identity_id')`
      const staying = named
        .map(({ name }) => name)
        .filter((name) => {
          const erased = owners[name]?.erased
          return typeof erased === "object" && "kept" in erased
        })
      expect(staying.toSorted()).toEqual(["handle", "tunnel_link", "tunnel_port"])
    }),
  )

  it("has an export member of the capability that owns it, or a reason against one", () => {
    for (const { name, exports, tables } of declared) {
      const members = exports.flatMap((exported) => exported.members)
      const used = Object.values(tables).flatMap(({ exported }) => (typeof exported === "string" ? [exported] : []))
      expect(
        [...new Set(used)].toSorted(),
        `the ${name} capability: \`exports\` and \`tables\` in its record (packages/cluster/src/*/*Capability.ts) differ`,
      ).toEqual(members.toSorted())
    }
  })

  it.effect("is in a backup", () =>
    Effect.gen(function* () {
      const stored = yield* Tables.tables(yield* Unhurried)
      const expected = (yield* present).filter((name) => name !== "svc_migrations")
      expect(stored.map(({ name }) => name).toSorted()).toEqual(expected.toSorted())
    }),
  )
})
