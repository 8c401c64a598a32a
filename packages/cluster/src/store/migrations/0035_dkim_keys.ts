/**
 * Keys that sign our mail (RFC 6376). The private half is a `service_key` under `dkim/<domain>/<selector>`, so that a change
 * of the master key reaches it too; the keys of a generation were made together, one for each algorithm.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const dkimKeys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table dkim_key (
    domain text not null,
    selector text not null,
    generation integer not null,
    algorithm text not null,
    -- The p tag of its record.
    public_key text not null,
    created_at timestamptz not null,
    -- Since when, or from when on at the latest, it signs.
    signs_from timestamptz not null,
    primary key (domain, selector),
    unique (domain, generation, algorithm)
  )`
})
