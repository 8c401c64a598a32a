/** Accounts, Handles, Identities with their sagas, Mailboxes, Events, Webhooks and deliveries. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // --- Account
  `create table org (
    id uuid primary key,
    email text not null unique,
    language text not null,
    status text not null default 'active' check (status in ('active', 'deleting')),
    tos_version text not null,
    tos_accepted_at timestamptz not null,
    email_verified_at timestamptz,
    data_key bytea not null,
    identities_created integer not null default 0,
    first_ready_identity uuid,
    created_at timestamptz not null
  )`,
  `create table terms_acceptance (
    org_id uuid not null references org on delete cascade,
    version text not null,
    accepted_at timestamptz not null
  )`,
  `create index on terms_acceptance (org_id)`,
  `create table magic_link (
    token_hash bytea primary key,
    org_id uuid not null references org on delete cascade,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz
  )`,
  `create index on magic_link (org_id)`,
  `create index on magic_link (expires_at)`,
  `create table session (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    token_hash bytea not null unique,
    created_at timestamptz not null,
    last_used_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index on session (org_id)`,
  `create index on session (expires_at)`,

  // --- Identity. A Handle outlives its Identity and its Org: it is never issued twice.
  `create table handle (
    canonical text primary key,
    handle text not null,
    org_id uuid not null,
    registered_at timestamptz not null
  )`,
  `create table identity_actor (
    canonical text primary key,
    epoch integer not null
  )`,
  `create table identity (
    id uuid primary key,
    canonical text not null unique references handle,
    handle text not null,
    org_id uuid not null references org,
    status text not null check (status in ('provisioning', 'ready', 'failed', 'deleting')),
    saga jsonb not null,
    saga_due_at timestamptz,
    ready_at timestamptz,
    created_at timestamptz not null
  )`,
  `create index on identity (org_id, id)`,
  `create index on identity (saga_due_at) where saga_due_at is not null`,
  `create table api_key (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    identity_id uuid references identity on delete cascade,
    name text not null,
    token_prefix text not null,
    token_hash bytea not null unique,
    created_at timestamptz not null,
    last_used_at timestamptz,
    revoked_at timestamptz
  )`,
  `create index on api_key (org_id, id)`,
  `create index on api_key (identity_id)`,
  `create table show_once (
    identity_id uuid primary key references identity on delete cascade,
    key_id uuid,
    identity_key bytea,
    imap_password bytea,
    expires_at timestamptz
  )`,
  `create table tunnel_port (
    port integer primary key,
    identity_id uuid unique references identity,
    freed_at timestamptz
  )`,
  `create index on tunnel_port (freed_at nulls first, port) where identity_id is null`,
  `create table card (
    identity_id uuid primary key references identity on delete cascade,
    fields jsonb not null,
    version integer not null,
    updated_at timestamptz not null
  )`,

  // --- Mail
  `create table mailbox (
    identity_id uuid primary key references identity on delete cascade,
    uid_validity integer not null,
    uid_next integer not null default 1,
    bytes_used bigint not null default 0,
    imap_verifier bytea not null,
    refusals integer not null default 0,
    refused_at timestamptz,
    created_at timestamptz not null
  )`,
  `create table message (
    id uuid primary key,
    identity_id uuid not null references identity,
    uid integer not null,
    direction text not null check (direction in ('inbound', 'outbound')),
    thread_id uuid not null,
    tag text,
    message_id text,
    envelope_from text not null,
    recipient text not null,
    sha256 bytea not null,
    size integer not null,
    summary jsonb not null,
    received_at timestamptz not null,
    unique (identity_id, uid)
  )`,
  `create index on message (identity_id, id desc)`,
  `create index on message (identity_id, sha256)`,
  `create index on message (identity_id, message_id) where message_id is not null`,
  // Written before its message where the body is large; then the message's own insert is what claims it.
  `create table message_content (
    message_id uuid primary key,
    raw bytea not null,
    text text,
    html text,
    headers jsonb not null,
    search_text text not null,
    created_at timestamptz not null
  )`,
  `alter table message_content alter column raw set storage external`,
  `create table allowed_recipient (
    identity_id uuid not null references identity on delete cascade,
    address text not null,
    reason text not null check (reason in ('manual', 'account_owner', 'inbound')),
    created_at timestamptz not null,
    expires_at timestamptz,
    primary key (identity_id, address)
  )`,

  // Mail for the operator (postmaster@, abuse@).
  `create table system_mail (
    id uuid primary key,
    envelope_from text not null,
    sha256 bytea not null,
    subject text not null,
    raw bytea not null,
    received_at timestamptz not null,
    forwarded_at timestamptz,
    unique (sha256, envelope_from)
  )`,

  // --- Events and Webhooks. \`seq\` orders; \`xid\` lets a reader stop short of transactions still running.
  `create table event (
    seq bigint generated always as identity primary key,
    id uuid not null unique,
    xid xid8 not null default pg_current_xact_id(),
    org_id uuid not null references org on delete cascade,
    identity_id uuid,
    handle text,
    type text not null,
    data jsonb not null,
    created_at timestamptz not null
  )`,
  `create index on event (org_id, seq desc)`,
  `create index on event (identity_id, seq desc) where identity_id is not null`,
  `create table webhook (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    url text not null,
    event_types text[] not null,
    description text,
    status text not null default 'active' check (status in ('active', 'disabled')),
    created_at timestamptz not null
  )`,
  `create index on webhook (identity_id)`,
  `create table signing_secret (
    identity_id uuid not null references identity on delete cascade,
    id uuid primary key,
    sealed bytea not null,
    created_at timestamptz not null,
    retires_at timestamptz
  )`,
  `create index on signing_secret (identity_id)`,
  `create table delivery (
    id uuid primary key,
    webhook_id uuid not null references webhook on delete cascade,
    identity_id uuid not null,
    event_id uuid not null,
    event_type text not null,
    replay boolean not null default false,
    status text not null check (status in ('queued', 'delivered', 'retrying', 'failed')),
    attempts jsonb not null default '[]',
    attempt_started_at timestamptz,
    next_attempt_at timestamptz,
    created_at timestamptz not null
  )`,
  `create index on delivery (webhook_id, id desc)`,
  `create index on delivery (identity_id, next_attempt_at) where next_attempt_at is not null`,
  `create index on delivery (next_attempt_at) where next_attempt_at is not null`,

  // --- A sealed constant: a start with the wrong master key is refused before anything is written.
  `create table sealing_canary (
    id integer primary key,
    sealed bytea not null
  )`,
]

export const core = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
