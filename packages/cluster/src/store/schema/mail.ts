/** Mailboxes: messages, conversations and folders. Triggers keep the counters of conversations, whoever changes a message. */
export const mail: ReadonlyArray<string> = [
  // The Mailbox of an Identity: counters, limits, the IMAP password and the mail settings.
  `create table mailbox (
    identity_id uuid primary key references identity on delete cascade,
    uid_validity integer not null,
    uid_next integer not null default 1,
    bytes_used bigint not null default 0,
    -- A verifier of the IMAP password, from which the password cannot be recovered.
    imap_verifier bytea not null,
    refusals integer not null default 0,
    refused_at timestamptz,
    created_at timestamptz not null,
    switch_version integer not null default 1,
    stopped_at timestamptz,
    stopped_by text check (stopped_by in ('session', 'admin_key', 'identity_key', 'system')),
    stop_reason text,
    disclosure_version integer not null default 1,
    disclosure text,
    disclosure_updated_at timestamptz,
    approval text not null default 'none' check (approval in ('none', 'required')),
    -- When the warning about the hourly limit was last raised.
    mail_near_at timestamptz,
    -- Raised by every commit that changes messages, under the lock of this row (RFC 7162).
    modseq bigint not null default 1,
    tag_folders boolean not null default false,
    -- Messages up to this UID are already filed in the folders of their tags.
    tags_filed_uid integer not null default 0
  )`,

  // A message in a Mailbox. `uid` and `modseq` are assigned in commit order (RFC 9051, RFC 7162).
  `create table message (
    id uuid primary key,
    identity_id uuid not null references identity,
    uid integer not null,
    direction text not null check (direction in ('inbound', 'outbound')),
    thread_id uuid not null,
    -- The first of \`tags\`.
    tag text,
    -- The subaddress tags of all recipients, in their order.
    tags text[] not null default '{}',
    message_id text,
    envelope_from text not null,
    recipient text not null,
    sha256 bytea not null,
    size integer not null,
    summary jsonb not null,
    received_at timestamptz not null,
    seen boolean not null default false,
    flagged boolean not null default false,
    answered boolean not null default false,
    -- Lower case, unique, sorted by their bytes.
    labels text[] not null default '{}',
    modseq bigint not null default 1,
    -- The base subject (RFC 5256); null where the subject says nothing.
    subject_key text,
    -- A message that shows a draft to mail programs. The API does not list it.
    is_draft boolean not null default false,
    -- The time zone in which a mail program gave the time, in minutes east of UTC.
    received_zone smallint,
    unique (identity_id, uid)
  )`,
  `create index message_by_change on message (identity_id, modseq)`,
  `create index message_flagged on message (identity_id, uid) where flagged`,
  `create index message_identity_id_message_id_idx on message (identity_id, message_id) where message_id is not null`,
  `create index message_identity_id_tag_uid_idx on message (identity_id, tag, uid) where tag is not null`,
  `create index message_of_tags on message (identity_id, uid) where cardinality(tags) > 1`,
  `create index message_of_thread on message (identity_id, thread_id, uid)`,
  `create index message_unseen on message (identity_id, uid) where not seen`,

  // The body of a message. A large body is stored before its message; the insert of the message then claims it.
  `create table message_content (
    message_id uuid primary key,
    raw bytea storage external not null,
    text text,
    html text,
    headers jsonb not null,
    search_text text not null,
    created_at timestamptz not null,
    -- Null until a message has claimed the body.
    identity_id uuid,
    -- What ENVELOPE and BODYSTRUCTURE are answered from; null until it is first needed.
    structure text
  )`,
  `create index message_content_unclaimed on message_content (created_at) where identity_id is null`,

  // A very large body while it is received, slice by slice. Unlogged, because nothing of it has been acknowledged.
  `create unlogged table message_slice (
    message_id uuid not null,
    n integer not null,
    bytes bytea storage external not null,
    created_at timestamptz not null,
    primary key (message_id, n)
  )`,

  // The position of removed messages, so that a page can continue after a message that no longer exists.
  `create table removed_message (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    uid integer not null,
    removed_at timestamptz not null,
    modseq bigint not null default 1
  )`,
  `create index removed_message_by_change on removed_message (identity_id, modseq)`,
  `create index removed_message_removed_at_idx on removed_message (removed_at)`,

  // One row per conversation, kept up to date by triggers, so that listing conversations never reads messages.
  `create table thread (
    identity_id uuid not null,
    id uuid not null,
    subject_key text,
    messages integer not null,
    unread integer not null,
    last_uid integer not null,
    primary key (identity_id, id)
  )`,
  `create index thread_by_activity on thread (identity_id, last_uid desc)`,
  `create index thread_by_subject on thread (identity_id, subject_key, last_uid desc) where subject_key is not null`,

  // Message ids that messages refer to. Replies to a message that was never stored here find each other by it.
  `create table thread_reference (
    identity_id uuid not null,
    reference text not null,
    thread_id uuid not null,
    noted_at timestamptz not null,
    primary key (identity_id, reference)
  )`,
  `create index thread_reference_by_age on thread_reference using brin (noted_at)`,

  `create function thread_grows() returns trigger language plpgsql as $$
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
  `create trigger thread_shrinks after delete on message
   referencing old table as gone for each statement execute function thread_shrinks()`,

  // IMAP folders (RFC 9051). `/` separates levels.
  `create table folder (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    name text not null,
    use text check (use in ('inbox', 'sent', 'drafts', 'junk', 'trash', 'archive')),
    -- Unique within the Identity, so that a folder that is created again gets a new one.
    uid_validity integer not null,
    uid_next integer not null default 1,
    created_at timestamptz not null,
    -- The first UID that no session has been notified of (\\Recent, RFC 3501).
    recent_from integer not null default 1,
    unique (identity_id, name)
  )`,
  `create unique index folder_by_use on folder (identity_id, use) where use is not null`,

  // The messages in each folder. Flags belong to the message; `deleted` and `draft` belong to its place in a folder.
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
  `create index placed_by_change on placed (folder_id, modseq)`,
  `create index placed_by_message on placed (message_id)`,

  // UIDs that were expunged, with the change that removed them (QRESYNC, RFC 7162).
  `create table vanished (
    folder_id uuid not null references folder on delete cascade,
    uid integer not null,
    modseq bigint not null,
    primary key (folder_id, uid)
  )`,
  `create index vanished_by_change on vanished (folder_id, modseq)`,

  // Subscribed folder names. A subscription outlives its folder (RFC 9051 section 6.3.7).
  `create table folder_subscription (
    identity_id uuid not null references identity on delete cascade,
    name text not null,
    primary key (identity_id, name)
  )`,

  // SMTP transactions that were stored and not yet answered with 250. A repeat of one of them is not a second mail.
  `create table unanswered_mail (
    key bytea primary key,
    message_id uuid not null,
    received_at timestamptz not null
  )`,

  // Messages whose sender claims to be an agent, until the document of its DID was read.
  `create table agent_claim (
    message_id uuid primary key references message on delete cascade,
    identity_id uuid not null references identity on delete cascade,
    did text not null,
    -- The domain whose DKIM signature covers the DID.
    domain text not null,
    attempts integer not null default 0,
    next_attempt_at timestamptz not null
  )`,
  `create index agent_claim_of_identity on agent_claim (identity_id, next_attempt_at)`,
  `create index agent_claim_by_due on agent_claim (next_attempt_at)`,

  // Triples of client, sender and recipient for greylisting (RFC 6647).
  `create table greylist (
    key bytea primary key,
    first_seen_at timestamptz not null,
    seen_at timestamptz not null
  )`,
  `create index greylist_seen_at_idx on greylist (seen_at)`,

  // Mail for postmaster@ and abuse@, kept until it is forwarded to the operator.
  `create table system_mail (
    id uuid primary key,
    envelope_from text not null,
    sha256 bytea not null,
    subject text not null,
    raw bytea not null,
    received_at timestamptz not null,
    forwarded_at timestamptz,
    attempts int not null default 0,
    next_attempt_at timestamptz not null default '-infinity'
  )`,
  `create index system_mail_by_age on system_mail (received_at)`,
  `create index system_mail_due on system_mail (next_attempt_at) where forwarded_at is null`,
]
