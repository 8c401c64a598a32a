/** The search index of a Mailbox: segments of 256 messages, built some time after the messages arrived. */
export const search: ReadonlyArray<string> = [
  // Postings of one bucket of trigrams in one segment (`mail/search`).
  `create table search_segment (
    identity_id uuid not null references mailbox on delete cascade,
    bucket integer not null,
    segment integer not null,
    -- Compressing them gains nothing.
    entries bytea storage external not null,
    primary key (identity_id, bucket, segment)
  )`,

  // Segments to build: when their last UID is assigned, and again after messages of theirs were removed.
  `create table search_due (
    identity_id uuid not null references mailbox on delete cascade,
    segment integer not null,
    due_at timestamptz not null default now(),
    -- An earlier build of the segment can be searched.
    built boolean not null default false,
    -- Raised when the segment is noted again, so that a build notices changes made meanwhile.
    changes integer not null default 0,
    primary key (identity_id, segment)
  )`,
  `create index search_due_due_at_idx on search_due (due_at)`,

  `create function search_is_due() returns trigger language plpgsql as $$
  begin
    insert into search_due (identity_id, segment)
    select new.identity_id, segment
    from generate_series((old.uid_next - 1) / 256, (new.uid_next - 1) / 256 - 1) segment
    on conflict do nothing;
    return null;
  end $$`,
  `create trigger search_is_due after update on mailbox for each row
   when ((old.uid_next - 1) / 256 < (new.uid_next - 1) / 256) execute function search_is_due()`,
  `create function search_shrinks() returns trigger language plpgsql as $$
  begin
    insert into search_due as due (identity_id, segment, due_at, built)
    select distinct identity_id, (gone.uid - 1) / 256, now() + interval '10 minutes', true
    from gone join mailbox m using (identity_id)
    where (gone.uid - 1) / 256 < (m.uid_next - 1) / 256 order by 1, 2
    on conflict (identity_id, segment) do update set changes = due.changes + 1;
    return null;
  end $$`,
  `create trigger search_shrinks after delete on message
   referencing old table as gone for each statement execute function search_shrinks()`,
]
