/** How a Tunnel is to be served, what went through it, and what an Org's Tunnels transferred on a day. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const tunnelSettings = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The host that the agent forwards to, for requests that are to name it.
  yield* sql`alter table tunnel_link add column local_host text`
  // Without a row the defaults hold. The password's hash is sealed under the Org's data key.
  yield* sql`create table tunnel_setting (
    identity_id uuid primary key references identity on delete cascade,
    settings jsonb not null,
    password_hash bytea
  )`
  yield* sql`create table tunnel_usage (
    identity_id uuid primary key references identity on delete cascade,
    bytes_in bigint not null,
    bytes_out bigint not null,
    requests bigint not null
  )`
  yield* sql`create table tunnel_transfer (
    org_id uuid not null references org on delete cascade,
    day date not null,
    bytes bigint not null,
    primary key (org_id, day)
  )`
})
