/**
 * Conversations. A row per thread, which the database keeps whenever messages come, are seen or go, whoever writes them:
 * lists of threads are read from it, so that they cost the same however many messages there are. `thread_reference` has
 * the ids that messages refer to, so that those which answer one message find each other where that was never here.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // What the subject is about; null where it says nothing, and in messages of versions before.
  `alter table message add column subject_key text`,
  `create table thread (
    identity_id uuid not null,
    id uuid not null,
    subject_key text,
    messages integer not null,
    unread integer not null,
    last_uid integer not null,
    primary key (identity_id, id)
  )`,
  `create table thread_reference (
    identity_id uuid not null,
    reference text not null,
    thread_id uuid not null,
    noted_at timestamptz not null,
    primary key (identity_id, reference)
  )`,
  `create index thread_reference_by_age on thread_reference using brin (noted_at)`,
  `create index message_of_thread on message (identity_id, thread_id, uid)`,
  `insert into thread (identity_id, id, messages, unread, last_uid)
   select identity_id, thread_id, count(*), count(*) filter (where not seen and direction = 'inbound'), max(uid)
   from message group by identity_id, thread_id`,
  `create index thread_by_activity on thread (identity_id, last_uid desc)`,
  `create index thread_by_subject on thread (identity_id, subject_key, last_uid desc) where subject_key is not null`,

  `create function thread_grows() returns trigger language plpgsql as $$
  begin
    insert into thread as t (identity_id, id, subject_key, messages, unread, last_uid)
    select identity_id, thread_id, (array_agg(subject_key order by uid))[1], count(*),
           count(*) filter (where not seen and direction = 'inbound'), max(uid)
    from added group by identity_id, thread_id order by identity_id, thread_id
    on conflict (identity_id, id) do update
    set messages = t.messages + excluded.messages, unread = t.unread + excluded.unread,
        last_uid = greatest(t.last_uid, excluded.last_uid);
    return null;
  end $$`,
  `create trigger thread_grows after insert on message
   referencing new table as added for each statement execute function thread_grows()`,

  `create function thread_is_seen() returns trigger language plpgsql as $$
  begin
    update thread t set unread = t.unread + changed.unread
    from (
      select n.identity_id, n.thread_id, sum(case when n.seen then -1 else 1 end)::int as unread
      from after n join before o on o.id = n.id
      where n.seen <> o.seen and n.direction = 'inbound' group by n.identity_id, n.thread_id
    ) changed
    where t.identity_id = changed.identity_id and t.id = changed.thread_id;
    return null;
  end $$`,
  `create trigger thread_is_seen after update on message
   referencing old table as before new table as after for each statement execute function thread_is_seen()`,

  `create function thread_shrinks() returns trigger language plpgsql as $$
  begin
    with less as (
      select identity_id, thread_id, count(*)::int as messages,
             (count(*) filter (where not seen and direction = 'inbound'))::int as unread, max(uid) as last_uid
      from gone group by identity_id, thread_id
    ),
    emptied as (
      delete from thread t using less
      where t.identity_id = less.identity_id and t.id = less.thread_id and t.messages <= less.messages
    )
    update thread t set messages = t.messages - less.messages, unread = t.unread - less.unread,
      last_uid = case when less.last_uid < t.last_uid then t.last_uid else coalesce((
        select max(m.uid) from message m where m.identity_id = t.identity_id and m.thread_id = t.id), t.last_uid) end
    from less
    where t.identity_id = less.identity_id and t.id = less.thread_id and t.messages > less.messages;
    return null;
  end $$`,
  `create trigger thread_shrinks after delete on message
   referencing old table as gone for each statement execute function thread_shrinks()`,
]

export const threads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
