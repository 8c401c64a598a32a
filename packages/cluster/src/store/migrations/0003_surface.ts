/** Device logins, account deletion, the Vault, settings of mail, Webhooks' versions, page views, idempotency, exports. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // --- Device login: the device code is kept as its hash, an approved key sealed until it is collected.
  `create table device_authorization (
    id uuid primary key,
    device_hash bytea not null unique,
    user_code text not null unique,
    name text not null,
    client text,
    status text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'collected')),
    org_id uuid references org on delete cascade,
    key_id uuid,
    sealed_key bytea,
    interval_seconds integer not null,
    polled_at timestamptz,
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index on device_authorization (expires_at)`,
  `create index on device_authorization (org_id)`,

  // --- Account
  `alter table org add column deletion_requested_at timestamptz`,
  `create index on org (id) where status = 'deleting'`,

  // --- Vault. Values are sealed under the Org's data key; the namespace is the Org's where \`identity_id\` is null.
  `create table vault_secret (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    identity_id uuid references identity on delete cascade,
    name text not null,
    description text,
    version integer not null,
    size integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    unique nulls not distinct (org_id, identity_id, name)
  )`,
  `create index on vault_secret (identity_id) where identity_id is not null`,
  `create table vault_version (
    secret_id uuid not null references vault_secret on delete cascade,
    version integer not null,
    id uuid not null,
    sealed bytea not null,
    size integer not null,
    created_at timestamptz not null,
    primary key (secret_id, version)
  )`,

  // --- Outgoing mail's switch and the AI disclosure; one version for each, which entity tags name.
  `alter table mailbox
    add column switch_version integer not null default 1,
    add column stopped_at timestamptz,
    add column stopped_by text check (stopped_by in ('session', 'admin_key', 'identity_key', 'system')),
    add column stop_reason text,
    add column disclosure_version integer not null default 1,
    add column disclosure text,
    add column disclosure_updated_at timestamptz`,
  `alter table webhook add column version integer not null default 1`,

  // --- Public counters and limits. The key of a limit is a keyed hash, kept for its window only.
  `create table page_view (
    day date not null,
    host text not null,
    path text not null,
    language text not null,
    views bigint not null,
    primary key (day, host, path, language)
  )`,
  `create table public_limit (
    key bytea primary key,
    window_start timestamptz not null,
    used integer not null
  )`,
  `create index on public_limit (window_start)`,

  // --- Idempotency: the first answer to a key, kept for a day.
  `create table idempotency_record (
    credential_id uuid not null,
    operation text not null,
    key text not null,
    fingerprint bytea not null,
    command_id uuid not null,
    started_at timestamptz not null,
    status integer,
    headers jsonb,
    body text,
    primary key (credential_id, operation, key)
  )`,
  `create index on idempotency_record (started_at)`,

  // --- Exports: the members of an archive as sealed pieces.
  `create table export (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    identity_id uuid references identity on delete cascade,
    handle text,
    status text not null default 'queued' check (status in ('queued', 'running', 'ready', 'failed')),
    size bigint,
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index on export (org_id, id desc)`,
  `create index on export (identity_id) where identity_id is not null`,
  `create index on export (id) where status in ('queued', 'running')`,
  `create table export_piece (
    export_id uuid not null references export on delete cascade,
    member text not null,
    number integer not null,
    sealed bytea not null,
    primary key (export_id, member, number)
  )`,
  `alter table export_piece alter column sealed set storage external`,

  // --- Keys of the service itself, sealed by the master key.
  `create table service_key (
    name text primary key,
    sealed bytea not null
  )`,
]

export const surface = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
