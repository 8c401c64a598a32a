/** A time as the data of an Event has it: RFC 3339 in UTC with milliseconds. */
import type { Statement } from "effect/sql"
import type { Sql } from "./Database.ts"

/** The column of a statement that raises the Event. */
export const instant = (sql: Sql, column: string): Statement.Fragment =>
  sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
