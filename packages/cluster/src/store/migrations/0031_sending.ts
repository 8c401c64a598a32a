/**
 * Outgoing mail. A message has a row of its own (`outgoing`), one for each of its recipients, and one in the outbox for
 * each domain among them: that is what an attempt is about. Drafts are what is not sent yet.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // `rows_left` and `failed` are counted down and up by whoever settles a row, so that the last one knows it is.
  `create table outgoing (
    message_id uuid primary key references message on delete cascade,
    identity_id uuid not null references identity on delete cascade,
    status text not null check (status in ('awaiting_approval', 'refused', 'queued', 'done')),
    rows_left integer not null,
    failed integer not null default 0,
    lapses_at timestamptz,
    asked_by text,
    decided_at timestamptz,
    decided_by text,
    decision_reason text,
    created_at timestamptz not null
  )`,
  `create index outgoing_awaiting on outgoing (identity_id, message_id) where status = 'awaiting_approval'`,
  `create index outgoing_lapsing on outgoing (lapses_at) where status = 'awaiting_approval'`,

  // Due at `next_attempt_at`; null while it awaits approval and once it is settled. An attempt leases it: then
  // `attempt_started_at` is set, and the lease ends at `next_attempt_at` unless it is renewed.
  `create table outbox (
    id uuid primary key,
    message_id uuid not null references message on delete cascade,
    identity_id uuid not null references identity on delete cascade,
    domain text not null,
    attempts integer not null default 0,
    attempt_started_at timestamptz,
    next_attempt_at timestamptz,
    held text,
    created_at timestamptz not null,
    unique (message_id, domain)
  )`,
  `create index outbox_of_identity on outbox (identity_id, next_attempt_at) where next_attempt_at is not null`,
  `create index outbox_due on outbox (next_attempt_at) where next_attempt_at is not null`,

  // `reply` is what a server said last: {"code", "status", "text", "host"}.
  `create table outgoing_recipient (
    message_id uuid not null references message on delete cascade,
    address text not null,
    outbox_id uuid not null,
    status text not null check (status in ('queued', 'sent', 'deferred', 'bounced')),
    reply jsonb,
    changed_at timestamptz not null,
    primary key (message_id, address)
  )`,

  // What counts against the hourly limit, whatever became of the message.
  `create table mail_use (
    identity_id uuid not null references identity on delete cascade,
    at timestamptz not null
  )`,
  `create index on mail_use (identity_id, at)`,

  `create table draft (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    version integer not null,
    summary jsonb not null,
    content text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `alter table draft alter column content set storage external`,
  `create index on draft (identity_id, id)`,

  `alter table mailbox
    add column approval text not null default 'none' check (approval in ('none', 'required')),
    add column mail_near_at timestamptz`,
  `alter table allowed_recipient
    add column suppressed_at timestamptz,
    add column suppression text`,
]

export const sending = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
