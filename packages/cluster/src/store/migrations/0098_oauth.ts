/** Access for clients by OAuth: who they say they are, what is asked of whom, what was granted, and the tokens for it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const oauth = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table oauth_client (
    -- "oc_" and a hash of what was registered, or the URL of a document.
    id text primary key,
    name text not null,
    redirects text[] not null,
    seen_at timestamptz not null,
    -- Of a document: when it was read last, and until when it is taken as it was.
    fetched_at timestamptz,
    fresh_until timestamptz
  )`
  yield* sql`create index on oauth_client (seen_at)`

  yield* sql`create table client_grant (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    client_id text not null,
    client_name text not null,
    -- The receiver of the codes as lists show it, and a hash of the redirect without a program's port.
    redirect_host text not null,
    redirect_hash bytea not null,
    resource text not null,
    scopes text[] not null,
    -- Null: the whole account.
    identities uuid[],
    created_at timestamptz not null,
    expires_at timestamptz not null,
    last_used_at timestamptz,
    last_used_address text,
    revoked_at timestamptz,
    reason text check (reason in ('holder', 'client', 'refresh_reuse', 'code_reuse', 'expired', 'account'))
  )`
  // A client that is let in again renews its Grant.
  yield* sql`create unique index client_grant_live on client_grant (org_id, client_id, redirect_hash) where revoked_at is null`
  yield* sql`create index on client_grant (org_id, id)`
  yield* sql`create index on client_grant (client_id)`
  yield* sql`create index on client_grant (expires_at) where revoked_at is null`
  yield* sql`create index on client_grant (revoked_at) where revoked_at is not null`

  yield* sql`create table oauth_request (
    id uuid primary key,
    -- As the client sent it.
    query text not null,
    -- The hash of what the browser keeps that began it; null once somebody who is signed in looks at it.
    browser_hash bytea,
    session_id uuid references session on delete cascade,
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`
  yield* sql`create index on oauth_request (session_id, created_at)`
  yield* sql`create index on oauth_request (expires_at)`

  yield* sql`create table oauth_token (
    hash bytea primary key,
    grant_id uuid not null references client_grant on delete cascade,
    kind text not null check (kind in ('code', 'access', 'refresh')),
    -- The code or the refresh token that it was given for.
    successor_of bytea,
    -- Of a code: what the client has to bring with it.
    redirect text,
    challenge text,
    expires_at timestamptz not null,
    first_used_at timestamptz,
    -- Pairs that a refresh token was given.
    pairs integer not null default 0
  )`
  yield* sql`create index on oauth_token (grant_id, expires_at)`
  yield* sql`create index on oauth_token (successor_of) where successor_of is not null`
  yield* sql`create index on oauth_token (expires_at)`

  // Letters to account holders that were not sent yet.
  yield* sql`create table grant_notice (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    kind text not null check (kind in ('created', 'refresh_reuse')),
    client_name text not null,
    redirect_host text not null,
    created_at timestamptz not null
  )`
})
