/** The rows of the Vault: the namespaces of secrets, the columns that statements read, and the place of sealed values. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { Secret } from "@svc/domain/vault/Vault"
import type { Statement } from "effect/sql"
import type { Place } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"

/** The namespace of the Org, or of one of its Identities. */
export interface Namespace {
  readonly org: string
  /** The Identity's id, or null for the Org's namespace. */
  readonly identity: IdentityId | null
}

/** Returns the condition that a secret `s` is in the namespace. */
export const inside = (sql: Sql, { org, identity }: Namespace): Statement.Fragment =>
  identity === null
    ? sql`s.org_id = ${org}::uuid and s.identity_id is null`
    : sql`s.org_id = ${org}::uuid and s.identity_id = ${identity}::uuid`

/**
 * Returns the place of a sealed version. A version has its own id, because its number is only known after the commit. The
 * place also includes the namespace, the secret's id and its name, so that a value cannot be moved to another secret.
 */
export const place = (
  namespace: { readonly org: string; readonly identity: string | null },
  secretId: string,
  name: string,
  versionId: string,
): Place => ({
  table: "vault_version",
  column: "sealed",
  row: versionId,
  org: namespace.org,
  names: [namespace.identity ?? "", secretId, name],
})

/** The columns of a secret that lists show. */
export interface Row {
  readonly id: string
  readonly name: string
  readonly size: number
  readonly description: string | null
  readonly version: number
  readonly created_at: Date
  readonly updated_at: Date
}

/** Returns the columns of {@link Row} from a table with the alias `s`. */
export const columns = (sql: Sql): Statement.Fragment =>
  sql`s.id, s.name, s.size, s.description, s.version, s.created_at, s.updated_at`

/** Returns the entity tag of a secret from a table with the alias `s`, as `bareTag` does. */
export const tag = (sql: Sql): Statement.Fragment =>
  sql`'v' || s.version || '.' || (extract(epoch from s.created_at) * 1000)::bigint`

/** A secret with one of its sealed versions. */
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
