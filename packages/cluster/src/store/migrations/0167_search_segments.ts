/**
 * What messages are found by, made after them and many at once: segments of 256 UIDs of a Mailbox, each in 256 buckets
 * (`mail/search`). A segment is due once its last UID is given out, and again when messages of it were removed, so that
 * nothing is kept of what is gone; whoever changes a Mailbox, the database notes it. An index of trigrams that an older
 * version made is left until all segments are there.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table search_segment (
    identity_id uuid not null references mailbox on delete cascade,
    bucket integer not null,
    segment integer not null,
    entries bytea not null,
    primary key (identity_id, bucket, segment)
  )`,
  // They are dense already.
  `alter table search_segment alter column entries set storage external`,
  // \`built\`: an earlier state of it can be searched. \`changes\` tells whether it was noted again meanwhile.
  `create table search_due (
    identity_id uuid not null references mailbox on delete cascade,
    segment integer not null,
    due_at timestamptz not null default now(),
    built boolean not null default false,
    changes integer not null default 0,
    primary key (identity_id, segment)
  )`,
  `create index on search_due (due_at)`,

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

  `insert into search_due (identity_id, segment)
   select identity_id, segment from mailbox, generate_series(0, (uid_next - 1) / 256 - 1) segment`,
]

export const searchSegments = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
