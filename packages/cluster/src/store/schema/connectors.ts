/** Connectors: the account of an Identity at a platform, and what its actor has to remember. */
export const connectors: ReadonlyArray<string> = [
  // A connection to a platform.
  `create table connector (
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    -- With the platform, the id of the actor.
    canonical text not null,
    org_id uuid not null,
    -- A new id for each connection. Values sealed for one connection do not open in another.
    connection_id uuid not null unique,
    status text not null check (status in ('connected', 'stopped')),
    account text not null,
    account_id text not null,
    service text not null,
    connected_via text not null,
    capabilities text[] not null,
    disclosed boolean not null,
    -- The profile has once declared that the account is automated. The Connector stops when it no longer does.
    declared boolean not null,
    -- What we changed on the profile, so that disconnecting can undo it.
    disclosure text,
    credential bytea not null,
    mark text,
    polled_at timestamptz,
    last_error text,
    poll_wait_millis integer not null,
    -- Null while the Connector does not poll.
    poll_due_at timestamptz,
    check_due_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    -- Set while the outcome of a refresh is unknown: the refresh token may be used up.
    refresh_began_at timestamptz,
    primary key (identity_id, platform)
  )`,
  `create index connector_check_due_at_idx on connector (check_due_at) where check_due_at is not null`,
  `create index connector_poll_due_at_idx on connector (poll_due_at) where poll_due_at is not null`,

  // Paused Connectors. A pause outlives a connection and applies to later ones.
  `create table connector_pause (
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    paused boolean not null,
    everyone boolean not null,
    primary key (identity_id, platform)
  )`,

  // Posts that already raised an Event, so that each post raises one.
  `create table connector_heard (
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    key bytea not null,
    heard_at timestamptz not null,
    primary key (identity_id, platform, key)
  )`,
  `create index connector_heard_heard_at_idx on connector_heard (heard_at)`,

  // OAuth authorizations in progress, found by the hash of their state.
  `create table connector_authorization (
    state_hash bytea primary key,
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    org_id uuid not null,
    sealed bytea not null,
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index connector_authorization_expires_at_idx on connector_authorization (expires_at)`,
  `create index connector_authorization_identity_id_platform_created_at_idx on connector_authorization (identity_id, platform, created_at)`,

  // Registrations of the service as an application at a server, one per Org.
  `create table connector_registration (
    org_id uuid not null references org on delete cascade,
    platform text not null,
    service text not null,
    sealed bytea not null,
    created_at timestamptz not null,
    primary key (org_id, platform, service)
  )`,

  // Sealed values that a platform keeps for a connection, such as tokens of the library.
  `create table connector_kept (
    connection_id uuid not null references connector (connection_id) on delete cascade,
    name text not null,
    sealed bytea not null,
    primary key (connection_id, name)
  )`,

  // Commands that post. A repeated command returns the post of the first one.
  `create table connector_sent (
    command_id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    platform text not null,
    post jsonb,
    begun_at timestamptz not null
  )`,
  `create index connector_sent_begun_at_idx on connector_sent (begun_at)`,
  `create index connector_sent_identity_id_idx on connector_sent (identity_id)`,

  // Credentials to revoke at their platform. A row outlives its Identity until the platform confirmed, or was
  // unavailable too often.
  `create table connector_revocation (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    identity_id uuid not null,
    canonical text not null,
    platform text not null,
    account text not null,
    account_id text not null,
    service text not null,
    connected_via text not null,
    -- Null once the credential is of no use.
    credential bytea,
    disclosure text,
    attempts integer not null,
    due_at timestamptz,
    last_error text,
    created_at timestamptz not null
  )`,
  `create index connector_revocation_canonical_platform_idx on connector_revocation (canonical, platform)`,
  `create index connector_revocation_due_at_idx on connector_revocation (due_at) where due_at is not null`,
]
