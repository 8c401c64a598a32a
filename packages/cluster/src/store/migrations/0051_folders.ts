/**
 * The folders that mail programs see (RFC 9051): a message stands in one or more of them, under a UID of each. Marks are
 * the message's and so the same in all; `deleted` and `draft` belong to its place. A UID is never given again; which
 * went, and with which change of the Mailbox, is remembered (RFC 7162). What was there before stands in INBOX and Sent.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const uses =
  "(values ('INBOX', 'inbox', 0), ('Sent', 'sent', 1), ('Drafts', 'drafts', 2), ('Junk', 'junk', 3), ('Trash', 'trash', 4))"

const statements = [
  `create table folder (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    -- Levels are divided by /.
    name text not null,
    use text check (use in ('inbox', 'sent', 'drafts', 'junk', 'trash', 'archive')),
    -- Of each folder of an Identity another: a name that comes back has one that it never had.
    uid_validity integer not null,
    uid_next integer not null default 1,
    created_at timestamptz not null,
    unique (identity_id, name)
  )`,
  `create unique index folder_by_use on folder (identity_id, use) where use is not null`,
  `create table placed (
    folder_id uuid not null references folder on delete cascade,
    uid integer not null,
    identity_id uuid not null,
    message_id uuid not null,
    deleted boolean not null default false,
    draft boolean not null default false,
    modseq bigint not null,
    primary key (folder_id, uid)
  )`,
  `create index placed_by_message on placed (message_id)`,
  `create index placed_by_change on placed (folder_id, modseq)`,
  `create index placed_by_identity on placed (identity_id)`,
  `create table vanished (
    folder_id uuid not null references folder on delete cascade,
    uid integer not null,
    modseq bigint not null,
    primary key (folder_id, uid)
  )`,
  `create index vanished_by_change on vanished (folder_id, modseq)`,
  // A name stays subscribed when its folder goes (RFC 9051 section 6.3.7).
  `create table folder_subscription (
    identity_id uuid not null references identity on delete cascade,
    name text not null,
    primary key (identity_id, name)
  )`,
  // What ENVELOPE, BODYSTRUCTURE and the bytes of a part are answered from; made at arrival, or when it is first asked for.
  `alter table message_content add column structure text`,

  `insert into folder (id, identity_id, name, use, uid_validity, created_at)
   select gen_random_uuid(), m.identity_id, u.name, u.use, m.uid_validity + u.n, m.created_at
   from mailbox m cross join ${uses} as u (name, use, n)`,
  `update mailbox set uid_validity = uid_validity + 5`,
  `insert into folder_subscription (identity_id, name) select identity_id, name from folder`,
  `insert into placed (folder_id, uid, identity_id, message_id, modseq)
   select f.id, row_number() over (partition by f.id order by m.uid), m.identity_id, m.id, m.modseq
   from message m join folder f
     on f.identity_id = m.identity_id and f.use = case m.direction when 'inbound' then 'inbox' else 'sent' end`,
  `update folder f set uid_next = p.uid + 1
   from (select folder_id, max(uid) as uid from placed group by folder_id) p where p.folder_id = f.id`,
]

export const mailFolders = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
