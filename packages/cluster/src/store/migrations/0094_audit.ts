/**
 * The audit log. Records and their seals are partitioned by month, so that a month goes as a whole when it is old; what
 * belongs to no month that was made goes to a partition of its own. Both only grow: nothing but the deletion of an account,
 * and a month that is put together, may touch what was written (`svc.audit` local to the transaction).
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
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
    -- The Identity may be gone: its records stay, with its Handle.
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
    -- Records are listed and sealed in the order of transactions that have ended (as Events are).
    xid xid8 not null default pg_current_xact_id(),
    primary key (id, at)
  ) partition by range (at)`,
  `create index on audit (org_id, xid, id)`,
  `create index on audit using brin (at)`,
  `create table audit_default partition of audit default`,

  `create table audit_seal (
    org_id uuid not null,
    seq bigint not null,
    record_id uuid not null,
    record_at timestamptz not null,
    previous bytea not null,
    hash bytea not null,
    primary key (org_id, seq, record_at)
  ) partition by range (record_at)`,
  `create index on audit_seal (org_id, record_id)`,
  `create table audit_seal_default partition of audit_seal default`,

  // The months that come later are made by the look of one process (`audit/Months`).
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

  // Where the chain of an Org ends, and what of it was signed. `due_at`: when there is to be looked for records again;
  // `marks` counts how often somebody said that there are.
  `create table audit_head (
    org_id uuid primary key references org on delete cascade,
    seq bigint not null default 0,
    hash bytea,
    sealed_at timestamptz,
    xid xid8 not null default '0',
    due_at timestamptz,
    marks bigint not null default 0,
    signed_seq bigint not null default 0,
    signed_at timestamptz not null
  )`,
  `create index on audit_head (due_at) where due_at is not null`,

  // Reads that are counted, not recorded one by one.
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
  `create index on audit_usage (hour)`,

  `create function audit_stands() returns trigger language plpgsql as $$
  begin
    if coalesce(current_setting('svc.audit', true), '') = 'removal' and tg_op = 'DELETE' then return old; end if;
    raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
  end $$`,
  `create trigger audit_stands before update or delete on audit for each row execute function audit_stands()`,
  `create trigger audit_stands before update or delete on audit_seal for each row execute function audit_stands()`,
  `create trigger audit_stands_whole before truncate on audit for each statement execute function audit_stands()`,
  `create trigger audit_stands_whole before truncate on audit_seal for each statement execute function audit_stands()`,
]

export const auditLog = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
