/** Rows of the Vault as its statements read them. */
import type { Secret } from "@svc/domain/vault/Vault"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** What lists show. */
export interface Row {
  readonly id: string
  readonly name: string
  readonly size: number
  readonly description: string | null
  readonly version: number
  readonly created_at: Date
  readonly updated_at: Date
}

/** Its columns, of a table called `s`. */
export const columns = (sql: Sql): Statement.Fragment =>
  sql`s.id, s.name, s.size, s.description, s.version, s.created_at, s.updated_at`

/** With a version as it is stored. */
export interface Sealed extends Row {
  readonly sealed: Uint8Array
  readonly version_id: string
  readonly data_key: Uint8Array
  readonly at: Date
  readonly shown: number
}

export const view = (row: Row): Secret => ({
  name: row.name,
  size: row.size,
  description: row.description,
  version: row.version,
  created_at: row.created_at,
  updated_at: row.updated_at,
})
