/** Tunnels: ports, settings, links of agents, and what was transferred. */
export const tunnel: ReadonlyArray<string> = [
  // The pool of TCP ports. A port that was freed rests before it is allotted again.
  `create table tunnel_port (
    port integer primary key,
    identity_id uuid unique references identity,
    freed_at timestamptz
  )`,
  `create index tunnel_port_freed_at_port_idx on tunnel_port (freed_at nulls first, port) where identity_id is null`,

  // Settings of a Tunnel; without a row the defaults apply.
  `create table tunnel_setting (
    identity_id uuid primary key references identity on delete cascade,
    settings jsonb not null,
    -- Sealed under the data key of the Org.
    password_hash bytea
  )`,

  // Links between agents and edges, as leases. Unlogged, because agents renew their links immediately after a
  // crash of the database.
  `create unlogged table tunnel_link (
    id uuid primary key,
    identity_id uuid not null,
    canonical text not null,
    edge_id text not null,
    edge_address text not null,
    instance text not null,
    client text not null,
    since timestamptz not null,
    lease_until timestamptz not null,
    -- The host name that the agent forwards to, for requests that should carry it.
    local_host text
  )`,
  `create index tunnel_link_canonical_idx on tunnel_link (canonical)`,
  `create index tunnel_link_edge_id_idx on tunnel_link (edge_id)`,
  `create index tunnel_link_identity_id_idx on tunnel_link (identity_id)`,
  `create index tunnel_link_lease_until_idx on tunnel_link (lease_until)`,

  // Traffic of a Tunnel since it was created.
  `create table tunnel_usage (
    identity_id uuid primary key references identity on delete cascade,
    bytes_in bigint not null,
    bytes_out bigint not null,
    requests bigint not null
  )`,

  // Bytes that the Tunnels of an Org transferred on a day (UTC), against the transfer limit.
  `create table tunnel_transfer (
    org_id uuid not null references org on delete cascade,
    day date not null,
    bytes bigint not null,
    -- The number of the last report of each edge, so that a repeated report counts once.
    reports jsonb not null default '{}',
    primary key (org_id, day)
  )`,
  `create index tunnel_transfer_by_day on tunnel_transfer (day)`,
]
