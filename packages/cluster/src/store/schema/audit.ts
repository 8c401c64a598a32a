/**
 * The audit log. Records and seals are partitioned by month, so that an old month is dropped as a whole. Both are append-only:
 * a trigger refuses every change except a removal in a transaction that sets `svc.audit` to `removal`.
 */
export const audit: ReadonlyArray<string> = [
  // Records of the audit log, listed and sealed in the order in which their transactions ended.
  `create table audit (
    org_id uuid not null,
    id uuid not null,
    at timestamptz not null,
    class text not null,
    action text not null,
    actor_kind text not null,
    actor_id text,
    actor_name text,
    actor_client text,
    -- The Identity may be gone. Its records stay, with its Handle.
    identity_id uuid,
    handle text,
    target_type text,
    target_id text,
    target_name text,
    outcome text not null,
    code text,
    scope text,
    address text,
    via text not null,
    tool text,
    user_agent text,
    request_id text,
    count integer not null default 1,
    xid xid8 not null default pg_current_xact_id(),
    -- A MAC that only the service can make (audit/Proof).
    proof text,
    primary key (id, at)
  ) partition by range (at)`,
  `create index audit_at_idx on audit using brin (at)`,
  `create index audit_org_id_xid_id_idx on audit (org_id, xid, id)`,

  // The seal of each record: its position in the chain of its Org, and the hash over the record and the previous seal.
  `create table audit_seal (
    org_id uuid not null,
    seq bigint not null,
    record_id uuid not null,
    record_at timestamptz not null,
    previous bytea not null,
    hash bytea not null,
    -- The record had no valid MAC when it was sealed.
    unproven boolean,
    -- The MAC of the seal and the id of its key (audit/Chain). Both are null in seals of versions without MACs.
    key text,
    mac bytea,
    primary key (org_id, seq, record_at)
  ) partition by range (record_at)`,
  `create index audit_seal_org_id_record_id_idx on audit_seal (org_id, record_id)`,
  `create index audit_seal_record_at_idx on audit_seal using brin (record_at)`,

  // Rows outside every month that was made. `audit/Months` makes later months ahead of time.
  `create table audit_default partition of audit default`,
  `create table audit_seal_default partition of audit_seal default`,
  `do $$
  declare month date := date_trunc('month', now() at time zone 'utc');
  begin
    for ahead in 0..2 loop
      execute format('create table audit_%s partition of audit for values from (%L) to (%L)', to_char(month, 'YYYY_MM'),
        month::text || ' 00:00+00', (month + interval '1 month')::date::text || ' 00:00+00');
      execute format('create table audit_seal_%s partition of audit_seal for values from (%L) to (%L)', to_char(month, 'YYYY_MM'),
        month::text || ' 00:00+00', (month + interval '1 month')::date::text || ' 00:00+00');
      month := month + interval '1 month';
    end loop;
  end $$`,

  // The end of the chain of an Org, and how far it was signed. `previous`, `hash`, `key` and `mac` repeat the seal of the last
  // record, since the month of that record may have been dropped.
  `create table audit_head (
    org_id uuid primary key references org on delete cascade,
    seq bigint not null default 0,
    previous bytea,
    hash bytea,
    key text,
    mac bytea,
    -- The number of the record that the MAC covers. It differs from seq if a version without MACs sealed records since.
    mac_seq bigint,
    -- When the service refused to continue the chain, because its end is not what the service sealed.
    refused_at timestamptz,
    sealed_at timestamptz,
    xid xid8 not null default '0',
    -- When to look for records to seal.
    due_at timestamptz,
    -- Raised each time a process reports new records.
    marks bigint not null default 0,
    signed_seq bigint not null default 0,
    signed_at timestamptz not null
  )`,
  `create index audit_head_due_at_idx on audit_head (due_at) where due_at is not null`,
  `create index audit_head_unsigned_idx on audit_head (signed_at) where refused_at is null and seq > signed_seq`,

  // Reads, counted per hour instead of recorded one by one.
  `create table audit_usage (
    org_id uuid not null references org on delete cascade,
    hour timestamptz not null,
    actor_kind text not null,
    actor_id text not null,
    action text not null,
    tool text not null,
    handle text not null,
    count bigint not null,
    primary key (org_id, hour, actor_kind, actor_id, action, tool, handle)
  )`,
  `create index audit_usage_hour_idx on audit_usage (hour)`,

  `create function audit_stands() returns trigger language plpgsql as $$
  begin
    if coalesce(current_setting('svc.audit', true), '') = 'removal' and tg_op = 'DELETE' then return old; end if;
    raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
  end $$`,
  `create trigger audit_stands before delete or update on audit for each row execute function audit_stands()`,
  `create trigger audit_stands before delete or update on audit_seal for each row execute function audit_stands()`,
  `create trigger audit_stands_whole before truncate on audit for each statement execute function audit_stands()`,
  `create trigger audit_stands_whole before truncate on audit_seal for each statement execute function audit_stands()`,
]
