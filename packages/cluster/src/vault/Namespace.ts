/** Whose secrets: the Org's own, or those of an Identity. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { Statement } from "effect/sql"
import type { Place } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"

/** A namespace: the Org's own, or an Identity's of this Org. */
export interface Namespace {
  readonly org: string
  /** The Identity's id, null for the Org's namespace. */
  readonly identity: IdentityId | null
}

/** That a secret `s` is in the namespace. */
export const inside = (sql: Sql, { org, identity }: Namespace): Statement.Fragment =>
  identity === null
    ? sql`s.org_id = ${org}::uuid and s.identity_id is null`
    : sql`s.org_id = ${org}::uuid and s.identity_id = ${identity}::uuid`

/**
 * A version is sealed under an id of its own, since its number is only known with its commit; and under whose it is, the
 * secret and its name, so that it opens in the place of no other.
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
