/** The Vault: secrets and the latest versions of their sealed values. */
export const vault: ReadonlyArray<string> = [
  // Secrets of the Vault. The namespace is the Org where `identity_id` is null.
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
  `create index vault_secret_identity_id_idx on vault_secret (identity_id) where identity_id is not null`,

  // Versions of a secret, sealed under the data key of the Org.
  `create table vault_version (
    secret_id uuid not null references vault_secret on delete cascade,
    version integer not null,
    id uuid not null,
    sealed bytea not null,
    size integer not null,
    created_at timestamptz not null,
    primary key (secret_id, version)
  )`,
  `create index vault_version_first_form on vault_version (id) where get_byte(sealed, 0) = 1`,
]
