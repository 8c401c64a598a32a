/** Those whose status says connected, for the look at which of them have no link any more. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const connectedIdentities = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`create index identity_tunnel_connected on identity (id) where tunnel_connected`,
)
