/** Events, Webhooks and deliveries. */
export const events: ReadonlyArray<string> = [
  // Events. `seq` orders them; `xid` lets a reader stop before transactions that are still running.
  `create table event (
    seq bigint generated always as identity primary key,
    id uuid not null unique,
    xid xid8 not null default pg_current_xact_id(),
    org_id uuid not null references org on delete cascade,
    identity_id uuid,
    handle text,
    type text not null,
    data jsonb not null,
    created_at timestamptz not null,
    -- Who caused the Event and in which request; null for the service itself.
    caused_by jsonb
  )`,
  `create index event_identity_id_seq_idx on event (identity_id, seq desc) where identity_id is not null`,
  `create index event_of_type on event (org_id, type, seq desc)`,
  `create index event_org_id_seq_idx on event (org_id, seq desc)`,
  `create index event_org_id_xid_seq_idx on event (org_id, xid, seq)`,
  `create index event_xid_idx on event (xid)`,

  // Webhooks of an Identity.
  `create table webhook (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    url text not null,
    event_types text[] not null,
    description text,
    status text not null default 'active' check (status in ('active', 'disabled')),
    created_at timestamptz not null,
    version integer not null default 1,
    -- The credential that made the Webhook or adopted it: deliveries are limited to what it may still read. Null for no limit.
    creator_kind text,
    creator_id uuid
  )`,
  `create index webhook_identity_id_idx on webhook (identity_id)`,
  `create index webhook_in_order on webhook (identity_id, id)`,

  // Removed Webhooks whose deliveries are still being deleted in batches.
  `create table removed_webhook (
    id uuid primary key,
    removed_at timestamptz not null
  )`,

  // HMAC secrets of an Identity, sealed. After a rotation the former secret also signs until `retires_at`.
  `create table signing_secret (
    identity_id uuid not null references identity on delete cascade,
    id uuid primary key,
    sealed bytea not null,
    created_at timestamptz not null,
    retires_at timestamptz
  )`,
  `create index signing_secret_identity_id_idx on signing_secret (identity_id)`,
  `create index signing_secret_retiring on signing_secret (retires_at) where retires_at is not null`,

  // One Event for one Webhook. An attempt leases the row. The row has no foreign key to the Webhook, so that removing a
  // Webhook does not wait for its deliveries.
  `create table delivery (
    id uuid primary key,
    webhook_id uuid not null,
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
  `create index delivery_done on delivery (created_at) where status in ('delivered', 'failed')`,
  `create index delivery_first_attempts on delivery (webhook_id, id) where status = 'queued'`,
  // Attempts in flight: few rows, among which the abandoned ones are found however many rows are due.
  `create index delivery_in_flight on delivery (identity_id, next_attempt_at) where attempt_started_at is not null`,
  `create index delivery_identity_id_next_attempt_at_idx on delivery (identity_id, next_attempt_at) where next_attempt_at is not null`,
  `create index delivery_next_attempt_at_idx on delivery (next_attempt_at) where next_attempt_at is not null`,
  `create index delivery_retries on delivery (webhook_id, next_attempt_at) where status = 'retrying'`,
  `create index delivery_webhook_id_id_idx on delivery (webhook_id, id desc)`,
]
