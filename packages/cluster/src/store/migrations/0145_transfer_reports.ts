/** The number of the last report that each edge told of a day's transfer, so that one that is told again counts once. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const transferReports = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`alter table tunnel_transfer add column reports jsonb not null default '{}'`,
)
