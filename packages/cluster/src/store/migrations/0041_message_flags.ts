/**
 * The marks on messages, and the order of changes in a Mailbox. `mailbox.modseq` is raised by every commit in which
 * messages arrive, are marked or are removed, under the lock of the Mailbox's row, so its values are given out in the
 * order of the commits (RFC 7162). A message has the value of its latest change, a removed one that of its removal;
 * messages of one commit share it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table message
     add column seen boolean not null default false,
     add column flagged boolean not null default false,
     add column answered boolean not null default false,
     -- In the order of their bytes, each once, lower case.
     add column labels text[] not null default '{}',
     add column modseq bigint not null default 1`,
  `alter table mailbox add column modseq bigint not null default 1`,
  `alter table removed_message add column modseq bigint not null default 1`,
  `create index message_by_change on message (identity_id, modseq)`,
  `create index removed_message_by_change on removed_message (identity_id, modseq)`,
  `drop index removed_message_identity_id_idx`,
]

export const messageFlags = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
