/** What waits of a Webhook is found without passing over what was delivered before. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const dueDeliveries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index delivery_first_attempts on delivery (webhook_id, id) where status = 'queued'`
  yield* sql`create index delivery_retries on delivery (webhook_id, next_attempt_at) where status = 'retrying'`
})
