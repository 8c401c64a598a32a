/** A key as its holder sees it. */
import type { ApiKey } from "@svc/domain/account/Account"
import { networksOf } from "@svc/domain/account/Networks"
import { scopesOf } from "@svc/domain/account/Scope"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

export interface KeyRow extends Omit<ApiKey, "scope" | "scopes" | "networks"> {
  readonly scopes: string
  readonly networks: string | null
}

export const keyColumns = (sql: Sql): Statement.Fragment =>
  sql`id, name, identity_id, token_prefix, scopes, networks, created_at, expires_at, last_used_at, last_used_address,
    replaced_by, revoked_at`

export const keyView = (row: KeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  scope: row.identity_id === null ? "org" : "identity",
  identity_id: row.identity_id,
  token_prefix: row.token_prefix,
  scopes: scopesOf(row.scopes).names,
  networks: networksOf(row.networks)?.names ?? null,
  created_at: row.created_at,
  expires_at: row.expires_at,
  last_used_at: row.last_used_at,
  last_used_address: row.last_used_address,
  replaced_by: row.replaced_by,
  revoked_at: row.revoked_at,
})
