/** Connectors: the account of an Identity at a platform, and what its actor remembers beside it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const connectors = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table connector (
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    -- The actor's name is these two.
    canonical text not null,
    org_id uuid not null,
    -- A new one with each connection: what is sealed under it opens nowhere else.
    connection_id uuid not null unique,
    status text not null check (status in ('connected', 'stopped')),
    account text not null,
    account_id text not null,
    service text not null,
    connected_via text not null,
    capabilities text[] not null,
    disclosed boolean not null,
    -- Its profile once said that it is automated; when it does no longer, the Connector stops.
    declared boolean not null,
    -- What we have changed on the profile, to be taken back.
    disclosure text,
    credential bytea not null,
    mark text,
    polled_at timestamptz,
    last_error text,
    poll_wait_millis integer not null,
    -- Null while it does nothing.
    poll_due_at timestamptz,
    check_due_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (identity_id, platform)
  )`
  yield* sql`create index on connector (poll_due_at) where poll_due_at is not null`
  yield* sql`create index on connector (check_due_at) where check_due_at is not null`

  // A pause outlives a connection, and holds for one that is made later.
  yield* sql`create table connector_pause (
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    paused boolean not null,
    everyone boolean not null,
    primary key (identity_id, platform)
  )`

  // What was told already, so that each post raises one Event.
  yield* sql`create table connector_heard (
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    key bytea not null,
    heard_at timestamptz not null,
    primary key (identity_id, platform, key)
  )`
  yield* sql`create index on connector_heard (heard_at)`

  yield* sql`create table connector_authorization (
    state_hash bytea primary key,
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    org_id uuid not null,
    sealed bytea not null,
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`
  yield* sql`create index on connector_authorization (identity_id, platform, created_at)`
  yield* sql`create index on connector_authorization (expires_at)`

  // How servers know us as an application, by Org.
  yield* sql`create table connector_registration (
    org_id uuid not null references org on delete cascade,
    platform text not null,
    service text not null,
    sealed bytea not null,
    created_at timestamptz not null,
    primary key (org_id, platform, service)
  )`

  yield* sql`create table connector_kept (
    connection_id uuid not null references connector (connection_id) on delete cascade,
    name text not null,
    sealed bytea not null,
    primary key (connection_id, name)
  )`

  // Commands that post: one that comes again answers what the first one made.
  yield* sql`create table connector_sent (
    command_id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    post jsonb,
    begun_at timestamptz not null
  )`
  yield* sql`create index on connector_sent (identity_id)`
  yield* sql`create index on connector_sent (begun_at)`

  // It outlives the Identity: a credential is not forgotten before the platform has ended it, or was out of reach too long.
  yield* sql`create table connector_revocation (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    identity_id uuid not null,
    canonical text not null,
    platform text not null,
    account text not null,
    account_id text not null,
    service text not null,
    connected_via text not null,
    -- Null once it is of no use any more.
    credential bytea,
    disclosure text,
    attempts integer not null,
    due_at timestamptz,
    last_error text,
    created_at timestamptz not null
  )`
  yield* sql`create index on connector_revocation (canonical, platform)`
  yield* sql`create index on connector_revocation (due_at) where due_at is not null`
})
