/** Outgoing mail: recipients, drafts, the outbox and its attempts, and the keys that sign. */
export const sending: ReadonlyArray<string> = [
  // Addresses that an Identity may write to.
  `create table allowed_recipient (
    identity_id uuid not null references identity on delete cascade,
    address text not null,
    reason text not null check (reason in ('manual', 'account_owner', 'inbound')),
    created_at timestamptz not null,
    expires_at timestamptz,
    suppressed_at timestamptz,
    suppression text,
    primary key (identity_id, address)
  )`,

  // A message that was accepted for sending, or that waits for approval.
  `create table outgoing (
    message_id uuid primary key references message on delete cascade,
    identity_id uuid not null,
    status text not null check (status in ('awaiting_approval', 'refused', 'queued', 'done')),
    -- Rows of the outbox that are not settled. Whoever settles the last one completes the message.
    rows_left integer not null,
    failed integer not null default 0,
    -- When an approval that nobody decided expires.
    lapses_at timestamptz,
    asked_by text,
    decided_at timestamptz,
    decided_by text,
    decision_reason text,
    created_at timestamptz not null,
    -- Tells a repeated submission of a mail program from a second message; null for the API.
    submission_key bytea
  )`,
  `create index outgoing_awaiting on outgoing (identity_id, message_id) where status = 'awaiting_approval'`,
  `create index outgoing_lapsing on outgoing (lapses_at) where status = 'awaiting_approval'`,
  `create unique index outgoing_submission on outgoing (identity_id, submission_key) where submission_key is not null`,

  // One row per recipient domain of a message. An attempt leases the row; `next_attempt_at` is null while the message
  // waits for approval and after the row is settled.
  `create table outbox (
    id uuid primary key,
    message_id uuid not null references message on delete cascade,
    identity_id uuid not null,
    domain text not null,
    attempts integer not null default 0,
    attempt_started_at timestamptz,
    next_attempt_at timestamptz,
    -- Why the row waits without an attempt, such as a missing transport.
    held text,
    created_at timestamptz not null,
    unique (message_id, domain)
  )`,
  `create index outbox_due on outbox (next_attempt_at) where next_attempt_at is not null`,
  `create index outbox_of_identity on outbox (identity_id, next_attempt_at) where next_attempt_at is not null`,

  // The state of each recipient of a message.
  `create table outgoing_recipient (
    message_id uuid not null references message on delete cascade,
    address text not null,
    outbox_id uuid not null,
    status text not null check (status in ('queued', 'sent', 'deferred', 'bounced')),
    -- The last reply of a server: {code, status, text, host}.
    reply jsonb,
    changed_at timestamptz not null,
    primary key (message_id, address)
  )`,

  // Messages that count against the hourly limit, whatever became of them.
  `create table mail_use (
    identity_id uuid not null references identity on delete cascade,
    at timestamptz not null
  )`,
  `create index mail_use_identity_id_at_idx on mail_use (identity_id, at)`,

  // Mail that was written and not sent.
  `create table draft (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    version integer not null,
    summary jsonb not null,
    content text storage external not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create index draft_identity_id_id_idx on draft (identity_id, id)`,

  // The message that shows a draft in the IMAP folder of drafts. The row has no foreign key to the draft: a row without
  // its draft marks a message to remove.
  `create table draft_picture (
    draft_id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    message_id uuid not null,
    -- The version of the draft that the message shows.
    version integer not null
  )`,
  `create index draft_picture_by_identity on draft_picture (identity_id)`,
  `create unique index draft_picture_by_message on draft_picture (message_id)`,

  // DKIM keys (RFC 6376). The private key is the row `dkim/<domain>/<selector>` of `service_key`; keys of one generation
  // were made together, one per algorithm.
  `create table dkim_key (
    domain text not null,
    selector text not null,
    generation integer not null,
    algorithm text not null,
    -- The p tag of the DNS record.
    public_key text not null,
    created_at timestamptz not null,
    -- When the key starts to sign, at the latest.
    signs_from timestamptz not null,
    primary key (domain, selector),
    unique (domain, generation, algorithm)
  )`,
]
