/**
 * Drafts in mail programs. A draft of the API is shown in the folder of drafts by a message made of it, its picture; what a
 * program files there and the API can keep as a draft is its own picture. Such messages are no messages of the API
 * (`is_draft`): they are in no list and no thread of it. And whether tags are folders.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table message add column is_draft boolean not null default false`,
  // Without a foreign key to the draft: which are left behind is how it is known what went.
  `create table draft_picture (
    draft_id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    message_id uuid not null,
    -- Of the draft, as it is shown.
    version integer not null
  )`,
  `create unique index draft_picture_by_message on draft_picture (message_id)`,
  `create index draft_picture_by_identity on draft_picture (identity_id)`,
  // Tagged messages stand in Tags/<tag> as well.
  `alter table mailbox
     add column tag_folders boolean not null default false,
     -- Up to which message they do.
     add column tags_filed_uid integer not null default 0`,

  `create or replace function thread_grows() returns trigger language plpgsql as $$
  begin
    insert into thread as t (identity_id, id, subject_key, messages, unread, last_uid)
    select identity_id, thread_id, (array_agg(subject_key order by uid))[1], count(*),
           count(*) filter (where not seen and direction = 'inbound'), max(uid)
    from added where not is_draft group by identity_id, thread_id order by identity_id, thread_id
    on conflict (identity_id, id) do update
    set messages = t.messages + excluded.messages, unread = t.unread + excluded.unread,
        last_uid = greatest(t.last_uid, excluded.last_uid);
    return null;
  end $$`,
  `create or replace function thread_shrinks() returns trigger language plpgsql as $$
  begin
    with less as (
      select identity_id, thread_id, count(*)::int as messages,
             (count(*) filter (where not seen and direction = 'inbound'))::int as unread, max(uid) as last_uid
      from gone where not is_draft group by identity_id, thread_id
    ),
    emptied as (
      delete from thread t using less
      where t.identity_id = less.identity_id and t.id = less.thread_id and t.messages <= less.messages
    )
    update thread t set messages = t.messages - less.messages, unread = t.unread - less.unread,
      last_uid = case when less.last_uid < t.last_uid then t.last_uid else coalesce((
        select max(m.uid) from message m
        where m.identity_id = t.identity_id and m.thread_id = t.id and not m.is_draft), t.last_uid) end
    from less
    where t.identity_id = less.identity_id and t.id = less.thread_id and t.messages > less.messages;
    return null;
  end $$`,
]

export const draftPictures = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
