/** Access for apps by OAuth: clients, requests for consent, Grants and tokens. */
export const oauth: ReadonlyArray<string> = [
  // OAuth clients: `oc_` and a hash of the registration, or the URL of a client metadata document.
  `create table oauth_client (
    id text primary key,
    name text not null,
    redirects text[] not null,
    seen_at timestamptz not null,
    -- Of a document: when it was last read, and until when it is used without reading it again.
    fetched_at timestamptz,
    fresh_until timestamptz,
    -- The algorithm of the client's ID tokens; null for a client that did not say that it uses OpenID Connect.
    id_token_alg text
  )`,
  `create index oauth_client_seen_at_idx on oauth_client (seen_at)`,

  // Grants: what an account holder allows an app, until when and from where.
  `create table client_grant (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    client_id text not null,
    client_name text not null,
    -- The host that receives the codes, as lists show it.
    redirect_host text not null,
    -- A hash of the redirect URL without the port of a local program.
    redirect_hash bytea not null,
    resource text not null,
    scopes text[] not null,
    -- Null for the whole account.
    identities uuid[],
    created_at timestamptz not null,
    expires_at timestamptz not null,
    last_used_at timestamptz,
    last_used_address text,
    revoked_at timestamptz,
    reason text check (reason in ('holder', 'client', 'refresh_reuse', 'code_reuse', 'expired', 'account')),
    -- Networks from which the app may call; null for all.
    networks text
  )`,
  `create index client_grant_client_id_idx on client_grant (client_id)`,
  `create index client_grant_expires_at_idx on client_grant (expires_at) where revoked_at is null`,
  // An app that is allowed again renews its Grant.
  `create unique index client_grant_live on client_grant (org_id, client_id, redirect_hash) where revoked_at is null`,
  `create index client_grant_org_id_id_idx on client_grant (org_id, id)`,
  `create index client_grant_revoked_at_idx on client_grant (revoked_at) where revoked_at is not null`,

  // Requests for consent that nobody has decided yet.
  `create table oauth_request (
    id uuid primary key,
    -- The query as the client sent it.
    query text not null,
    -- A hash of the cookie of the browser that started the request; null once a signed-in person has opened it.
    browser_hash bytea,
    session_id uuid references session on delete cascade,
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index oauth_request_expires_at_idx on oauth_request (expires_at)`,
  `create index oauth_request_session_id_created_at_idx on oauth_request (session_id, created_at)`,

  // Codes, access tokens and refresh tokens of Grants, as hashes.
  `create table oauth_token (
    hash bytea primary key,
    grant_id uuid not null references client_grant on delete cascade,
    kind text not null check (kind in ('code', 'access', 'refresh')),
    -- The code or refresh token that this token was issued for.
    successor_of bytea,
    -- Of a code: what the client must present with it.
    redirect text,
    challenge text,
    expires_at timestamptz not null,
    first_used_at timestamptz,
    -- Pairs of tokens that this refresh token was exchanged for.
    pairs integer not null default 0
  )`,
  `create index oauth_token_expires_at_idx on oauth_token (expires_at)`,
  `create index oauth_token_grant_id_expires_at_idx on oauth_token (grant_id, expires_at)`,
  `create index oauth_token_successor_of_idx on oauth_token (successor_of) where successor_of is not null`,

  // Mails to account holders about Grants that were not sent yet.
  `create table grant_notice (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    kind text not null check (kind in ('created', 'refresh_reuse')),
    client_name text not null,
    redirect_host text not null,
    created_at timestamptz not null,
    attempts int not null default 0,
    next_attempt_at timestamptz not null default '-infinity'
  )`,
  `create index grant_notice_due on grant_notice (next_attempt_at)`,
]
