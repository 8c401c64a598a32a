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

  // Settings of identity tokens.
  `create table proof_setting (
    identity_id uuid primary key references identity on delete cascade,
    -- The audiences for which the Identity may get tokens: a list, or "any".
    audiences jsonb not null
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
]
