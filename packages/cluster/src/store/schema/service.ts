/** Rows of the deployment itself: limits, idempotency, exports, backups, page views, and the service's own keys. */
export const service: ReadonlyArray<string> = [
  // One row: the oldest version of the program that may run over this database.
  `create table svc_schema (
    id integer default 1 primary key check (id = 1),
    oldest_program text not null
  )`,

  // A sealed constant. A start with the wrong master key is refused before anything is written.
  `create table sealing_canary (
    id integer primary key,
    sealed bytea not null
  )`,

  // Keys of the service itself, sealed by the master key.
  `create table service_key (
    name text primary key,
    sealed bytea not null
  )`,

  // Calls of an Org in the current minute. Unlogged, because after a crash of the database the minute starts again.
  `create unlogged table call_window (
    org_id uuid not null references org on delete cascade,
    policy text not null,
    number bigint not null,
    taken integer not null,
    primary key (org_id, policy)
  )`,

  // Limits of calls without a credential. The key is a keyed hash, kept for its window only.
  `create table public_limit (
    key bytea primary key,
    window_start timestamptz not null,
    used integer not null
  )`,
  `create index public_limit_window_start_idx on public_limit (window_start)`,

  // The first response to an `Idempotency-Key`, kept for a day.
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
  `create index idempotency_record_started_at_idx on idempotency_record (started_at)`,

  // Exports of an Org or of one Identity.
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
  `create index export_id_idx on export (id) where status in ('queued', 'running')`,
  `create index export_identity_id_idx on export (identity_id) where identity_id is not null`,
  `create index export_lapsing on export (expires_at)`,
  `create index export_org_id_id_idx on export (org_id, id desc)`,

  // The members of an export, as sealed pieces.
  `create table export_piece (
    export_id uuid not null references export on delete cascade,
    member text not null,
    number integer not null,
    sealed bytea storage external not null,
    primary key (export_id, member, number)
  )`,

  // Backups that succeeded; the most recent ones are kept.
  `create table backup (
    finished_at timestamptz primary key,
    bytes bigint not null,
    rows bigint not null
  )`,

  // Activity of an Identity in an hour (UTC), and of its whole account where the Identity is null. Every process adds its
  // counts every few seconds.
  `create table usage_hour (
    org_id uuid not null references org on delete cascade,
    -- The sums of the account keep the activity of deleted Identities.
    identity_id uuid references identity on delete cascade,
    hour timestamptz not null,
    -- What is counted: \`mail_received\`, \`delivery\` and so on (\`UsageKind\`).
    kind text not null,
    -- The Webhook of deliveries.
    webhook_id uuid,
    -- The duration of what is counted, on a logarithmic scale; null if it is not measured.
    bucket smallint,
    count bigint not null,
    failed bigint not null,
    bytes_in bigint not null,
    bytes_out bigint not null,
    unique nulls not distinct (org_id, identity_id, hour, kind, webhook_id, bucket)
  )`,
  `create index usage_hour_identity_id_idx on usage_hour (identity_id) where identity_id is not null`,
  `create index usage_hour_hour_idx on usage_hour (hour)`,

  // Page views of our own sites.
  `create table page_view (
    day date not null,
    host text not null,
    path text not null,
    language text not null,
    views bigint not null,
    primary key (day, host, path, language)
  )`,
  `create index page_view_by_day on page_view (day)`,
]
