/** Finds when Identities have work that is due. Concurrent requests of the actors in this process share one statement. */
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import * as Batcher from "../store/Batcher.ts"
import { type Sql, Writes } from "../store/Database.ts"

/** `earliest` returns the query of the earliest time for an Identity; it returns null if nothing is due. */
export const make = (earliest: (sql: Sql, identityId: Statement.Fragment) => Statement.Fragment) =>
  Effect.flatMap(Writes, (sql) =>
    Batcher.make((identities: ReadonlyArray<string>) =>
      Effect.map(
        sql<{ requested: number; due: Date | null }>`
          select requested.n::int as requested, (${earliest(sql, sql`requested.id`)}) as due
          from unnest(${identities}::uuid[]) with ordinality as requested (id, n)`,
        (rows) => Batcher.inOrder(identities)(rows).map((row) => row?.due ?? null),
      ),
    ),
  )
