/** Accounts: an Org, the ways to sign in to it, and the Terms that it accepted. */
export const account: ReadonlyArray<string> = [
  // An account. Every row of a customer belongs to one Org.
  `create table org (
    id uuid primary key,
    email text not null unique,
    language text not null,
    status text not null default 'active' check (status in ('active', 'deleting')),
    -- The version of the API for requests of the account that name none.
    api_version text not null default '2026-11-25',
    tos_version text not null,
    tos_accepted_at timestamptz not null,
    email_verified_at timestamptz,
    -- Seals the secrets of the Org; sealed by the master key. Deleting the row destroys all of them.
    data_key bytea not null,
    identities_created integer not null default 0,
    -- Set once, for the Event that the first Identity of an account raises.
    first_ready_identity uuid,
    created_at timestamptz not null,
    deletion_requested_at timestamptz
  )`,
  `create index org_id_idx on org (id) where status = 'deleting'`,

  // Versions of the Terms that an Org accepted.
  `create table terms_acceptance (
    org_id uuid not null references org on delete cascade,
    version text not null,
    accepted_at timestamptz not null
  )`,
  `create index terms_acceptance_org_id_idx on terms_acceptance (org_id)`,

  // Sign-in links. Only the hash of a link is stored.
  `create table magic_link (
    token_hash bytea primary key,
    org_id uuid not null references org on delete cascade,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz
  )`,
  `create index magic_link_expires_at_idx on magic_link (expires_at)`,
  `create index magic_link_org_id_idx on magic_link (org_id)`,

  // Console sessions. Only the hash of the token is stored.
  `create table session (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    token_hash bytea not null unique,
    created_at timestamptz not null,
    last_used_at timestamptz not null,
    expires_at timestamptz not null,
    user_agent text
  )`,
  `create index session_expires_at_idx on session (expires_at)`,
  `create index session_org_id_idx on session (org_id)`,

  // Device logins (RFC 8628). The device code is stored as a hash; the approved key is sealed until the device collects
  // it.
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
    expires_at timestamptz not null,
    -- What the device asks for; null leaves the choice to the account holder.
    scopes text,
    expires_in_days integer,
    -- The credential that approved the login: a key of an approver that was revoked is not handed out.
    approver_kind text,
    approver_id uuid
  )`,
  `create index device_authorization_expires_at_idx on device_authorization (expires_at)`,
  `create index device_authorization_org_id_idx on device_authorization (org_id)`,
  `create index device_uncollected on device_authorization (expires_at) where sealed_key is not null`,
]
