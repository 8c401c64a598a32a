/** Identities: Handles, keys, the A2A Card, and the actors that own them. */
export const identity: ReadonlyArray<string> = [
  // Every Handle that was ever registered. It outlives its Identity and its Org, so that no Handle is issued twice.
  `create table handle (
    canonical text primary key,
    handle text not null,
    org_id uuid not null,
    registered_at timestamptz not null
  )`,

  // An Identity and the state of its saga.
  `create table identity (
    id uuid primary key,
    canonical text not null unique references handle,
    handle text not null,
    org_id uuid not null references org,
    status text not null check (status in ('provisioning', 'ready', 'failed', 'deleting')),
    -- The checklist of the saga in progress, or of the last one.
    saga jsonb not null,
    saga_due_at timestamptz,
    ready_at timestamptz,
    created_at timestamptz not null,
    tunnel_connected boolean not null default false
  )`,
  `create index identity_org_id_id_idx on identity (org_id, id)`,
  `create index identity_saga_due_at_idx on identity (saga_due_at) where saga_due_at is not null`,
  `create index identity_tunnel_connected on identity (id) where tunnel_connected`,

  // Admin Keys (no Identity) and Identity Keys. Only the hash of the token is stored.
  `create table api_key (
    id uuid primary key,
    org_id uuid not null references org on delete cascade,
    identity_id uuid references identity on delete cascade,
    name text not null,
    token_prefix text not null,
    token_hash bytea not null unique,
    created_at timestamptz not null,
    last_used_at timestamptz,
    revoked_at timestamptz,
    scopes text not null default '*',
    expires_at timestamptz,
    -- Networks from which the key may be used; null for all.
    networks text,
    last_used_address text,
    -- The key that replaced this one by a rotation.
    replaced_by uuid,
    -- When the account holder is next notified of the expiry; null when there is nothing left to notify.
    end_told_at timestamptz
  )`,
  `create index api_key_end_told_at_idx on api_key (end_told_at) where (end_told_at is not null) and (revoked_at is null)`,
  `create index api_key_identity_id_idx on api_key (identity_id)`,
  `create index api_key_in_use on api_key (org_id, id desc) where revoked_at is null`,
  `create index api_key_org_id_id_idx on api_key (org_id, id)`,

  // Secrets of an Identity that nobody has acknowledged yet, sealed.
  `create table show_once (
    identity_id uuid primary key references identity on delete cascade,
    key_id uuid,
    identity_key bytea,
    imap_password bytea,
    expires_at timestamptz
  )`,
  `create index show_once_lapsing on show_once (expires_at) where expires_at is not null`,

  // The editable fields of the A2A Card.
  `create table card (
    identity_id uuid primary key references identity on delete cascade,
    fields jsonb not null,
    version integer not null,
    updated_at timestamptz not null,
    -- The signatures, with everything that determines the signed document; null if the card has to be signed.
    signature jsonb
  )`,

  // The epoch of each actor. An activation raises it; a write that names an older epoch changes nothing (fencing).
  `create table actor (
    kind text not null,
    id text not null,
    epoch integer not null,
    primary key (kind, id)
  )`,

  // Permits of actors' activations to start sending, with their deadlines (actor/Permit). Each epoch has its own row, since a
  // new owner waits for the permits of former owners to expire. A permit outlives other rows, so it has no foreign key.
  `create table actor_permit (
    kind text not null,
    id text not null,
    epoch integer not null,
    until timestamptz not null,
    primary key (kind, id, epoch)
  )`,

  // Commands that actors carried out in the last day. A repeated command returns its result and is not carried out again.
  `create table actor_command (
    id uuid not null,
    message text not null,
    done_at timestamptz not null,
    primary key (id, message)
  )`,
  `create index actor_command_done_at_idx on actor_command (done_at)`,

  // The first round trip of an Identity's actor: raises the epoch, then reads the Identity. In PL/pgSQL each statement sees
  // all earlier commits. A single SQL statement would read the state from before the claim waited for the write of the
  // former owner.
  `create function claimed_identity(name text) returns table (
    claimed int, id uuid, handle text, org_id uuid, status text, saga jsonb, saga_due_at timestamptz, data_key bytea)
  language plpgsql as $$
  begin
    insert into actor (kind, id, epoch) values ('Identity', name, 1)
      on conflict on constraint actor_pkey do update set epoch = actor.epoch + 1 returning actor.epoch into claimed;
    select i.id, i.handle, i.org_id, i.status, i.saga, i.saga_due_at, o.data_key
      into id, handle, org_id, status, saga, saga_due_at, data_key
      from identity i join org o on o.id = i.org_id where i.canonical = name;
    return next;
  end $$`,
]
