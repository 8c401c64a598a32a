/**
 * A mark for each transaction that stored mail and has not been answered with 250 yet, by which the sender's repeat of it
 * is told from a second equal mail. Marks take the place of a look for equal messages, so that index goes.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table unanswered_mail (
    key bytea primary key,
    message_id uuid not null,
    received_at timestamptz not null
  )`,
  `create index on unanswered_mail (received_at)`,
  `drop index message_identity_id_sha256_idx`,
  // Clients, senders and recipients that were seen together, where an operator wants new ones to come again.
  `create table greylist (
    key bytea primary key,
    first_seen_at timestamptz not null,
    seen_at timestamptz not null
  )`,
  `create index on greylist (seen_at)`,
  // Two equal mails for the operator are two.
  `alter table system_mail drop constraint system_mail_sha256_envelope_from_key`,
]

export const unansweredMail = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
