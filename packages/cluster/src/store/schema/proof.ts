/** Proof: the keys by which strangers verify Identities and the service. */
export const proof: ReadonlyArray<string> = [
  // Public keys of an Identity. The service has the private part of its own keys (`service`) until a rotation retires
  // them; an agent may register a key of which only the agent has the private part (`agent`).
  `create table signing_key (
    identity_id uuid not null references identity on delete cascade,
    -- The thumbprint of the key (RFC 7638).
    kid text not null,
    origin text not null check (origin in ('service', 'agent')),
    jwk jsonb not null,
    name text,
    -- The private key; null for keys of an agent and for retired keys.
    sealed bytea,
    -- The API key that registered an agent's key, which is published as long as that API key is valid; null for a session.
    registered_by uuid,
    created_at timestamptz not null,
    retired_at timestamptz,
    -- When a retired key disappears from the published documents.
    published_until timestamptz,
    -- The signature of the directory that a retired key made before it was rotated: {"input", "signature"}.
    directory jsonb,
    primary key (identity_id, kid)
  )`,
  `create unique index signing_key_current on signing_key (identity_id) where origin = 'service' and retired_at is null`,

  // Settings of identity tokens and of sign-ins.
  `create table proof_setting (
    identity_id uuid primary key references identity on delete cascade,
    -- The audiences for which the Identity may get tokens: a list, or "any".
    audiences jsonb not null default '[]',
    -- The sites at which the Identity may sign in without approval: a list, or "any".
    sites jsonb not null default '[]'
  )`,

  // Keys that sign identity tokens. The private key is the row `issuer/<domain>/<selector>` of `service_key`; keys of one
  // generation were made together, one per algorithm. The columns are those of `dkim_key`.
  `create table issuer_key (
    -- The issuer: the base address of the service.
    domain text not null,
    -- The thumbprint of the key (RFC 7638).
    selector text not null,
    generation integer not null,
    algorithm text not null,
    -- The public key as a JWK (RFC 7517).
    public_key text not null,
    created_at timestamptz not null,
    signs_from timestamptz not null,
    primary key (domain, selector),
    unique (domain, generation, algorithm)
  )`,

  // Sign-ins of Identities at relying parties of OpenID Connect.
  `create table agent_sign_in (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    client_id text not null,
    client_name text not null,
    redirect text not null,
    -- The host of the redirect, or the scheme of an app.
    site text not null,
    scopes text[] not null,
    status text not null check (status in ('awaiting_approval', 'approved', 'refused', 'started', 'signed_in', 'ended')),
    created_at timestamptz not null,
    -- When the request for approval, the approval, the code or the access token expires, depending on the status.
    expires_at timestamptz not null,
    decided_at timestamptz,
    signed_in_at timestamptz,
    ended_at timestamptz,
    nonce text,
    -- What the client must present with the code: the S256 challenge of its verifier (RFC 7636).
    challenge text not null,
    algorithm text not null,
    -- The credential that requested the code, which is only valid as long as that credential.
    credential_kind text not null,
    credential_id uuid not null,
    code_hash bytea unique,
    access_hash bytea unique
  )`,
  `create index agent_sign_in_identity_id_id_idx on agent_sign_in (identity_id, id)`,
  `create index agent_sign_in_client_id_idx on agent_sign_in (client_id)`,
  `create index agent_sign_in_expires_at_idx on agent_sign_in (expires_at)`,
]
