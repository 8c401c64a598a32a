/**
 * When the refresh began whose outcome is not known yet: a refresh token that is good once may be spent by then. Null where
 * the credential is what the platform last gave.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const connectorRefresh = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`alter table connector add column refresh_began_at timestamptz`,
)
