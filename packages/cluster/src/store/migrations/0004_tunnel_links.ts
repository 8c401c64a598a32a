/** Which edge holds a link of which agent, as leases; and whether an Identity is connected, as its Events have it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const tunnelLinks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Unlogged: a lease is worth nothing after a crash of the database, and agents renew theirs at once.
  yield* sql`create unlogged table tunnel_link (
    id uuid primary key,
    identity_id uuid not null,
    canonical text not null,
    edge_id text not null,
    edge_address text not null,
    instance text not null,
    client text not null,
    since timestamptz not null,
    lease_until timestamptz not null
  )`
  yield* sql`create index on tunnel_link (canonical)`
  yield* sql`create index on tunnel_link (identity_id)`
  yield* sql`create index on tunnel_link (edge_id)`
  yield* sql`create index on tunnel_link (lease_until)`
  yield* sql`alter table identity add column tunnel_connected boolean not null default false`
})
