import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Whether the Tunnel of the Identity asks for a password, as an expression. */
export const isLocked = (sql: Sql, identity: Statement.Fragment | string) =>
  sql`exists (select from tunnel_setting t where t.identity_id = ${identity} and t.password_hash is not null)`
