/** Foreign keys: an index covers the referring column, so that deleting one Org does not scan the rows of all Orgs. */
import { expect, layer } from "@effect/vitest"
import { Reads } from "@svc/cluster/store/Database"
import { Effect } from "effect"
import { databaseLayer } from "../harness/Database.ts"

/** These tables are always small, since their rows are removed once a revocation or mail is done. */
const few = ["connector_revocation(org_id)", "grant_notice(org_id)"]

layer(databaseLayer)("a reference", (it) => {
  it.effect("has an index that begins with its column", () =>
    Effect.gen(function* () {
      const sql = yield* Reads
      const without = yield* sql<{ name: string }>`
        select c.conrelid::regclass || '(' || string_agg(a.attname, ', ' order by a.attnum) || ')' as name
        from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any(c.conkey)
        where c.contype = 'f' and not exists (
          select from pg_index i
          where i.indrelid = c.conrelid
            -- Whoever refers to something says it: an index of those alone is one of all that matter.
            and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) = '(' || a.attname || ' IS NOT NULL)')
            and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)
        group by c.oid, c.conrelid order by 1`
      expect(without.map(({ name }) => name)).toEqual(few)
    }),
  )
})
