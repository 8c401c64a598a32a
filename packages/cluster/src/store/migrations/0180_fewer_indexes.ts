import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Indexes that each arriving message was entered in and that hardly anybody asked: what a removed Identity had placed is found
 * by its folders, and marks of unanswered mail are few.
 */
export const fewerIndexes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`drop index if exists placed_by_identity`
  yield* sql`drop index if exists unanswered_mail_received_at_idx`
})
