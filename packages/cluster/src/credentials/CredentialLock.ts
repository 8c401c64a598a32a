/**
 * Locks the credential of a request until the end of its transaction, so that what the credential creates and its end are in an
 * order: after a revocation was confirmed, nothing is created any more, although its request was admitted before.
 */
import type { CredentialKind } from "@svc/domain/account/Account"
import type { Initiator } from "@svc/domain/account/Initiator"
import type { ScopeName } from "@svc/domain/account/Scope"
import { Unauthenticated } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

interface Credential {
  readonly kind: CredentialKind
  readonly credentialId: string
}

/** A use that a Grant has to include. The rights of keys and sessions never change. */
interface GrantUse {
  readonly identityId: string
  readonly scope: ScopeName
}

/** Returns a select with a row, locked for the transaction, while the credential is valid. */
export const lockOf = (sql: Sql, { kind, credentialId }: Credential, at: Date, use?: GrantUse): Statement.Fragment => {
  switch (kind) {
    case "session":
      return sql`select from session where id = ${credentialId}::uuid and expires_at > ${at}::timestamptz for share`
    case "grant":
      return sql`
        select from client_grant where id = ${credentialId}::uuid and revoked_at is null and expires_at > ${at}::timestamptz
          ${
            use === undefined
              ? sql``
              : sql`and scopes @> ${[use.scope]}::text[] and (identities is null or ${use.identityId}::uuid = any(identities))`
          }
        for share`
    default:
      return sql`
        select from api_key where id = ${credentialId}::uuid and revoked_at is null
          and (expires_at is null or expires_at > ${at}::timestamptz) for share`
  }
}

/** Locks the credential for the transaction, or fails if it was revoked or has expired. The service itself needs none. */
export const assertValid = Effect.fnUntraced(function* (sql: Sql, { kind, credentialId }: Initiator, at: Date) {
  if (kind === "system" || credentialId === null) return
  const valid = yield* sql`${lockOf(sql, { kind, credentialId }, at)}`
  if (valid.length === 0) {
    return yield* new Unauthenticated({ detail: "The credential was revoked or has expired during the request." })
  }
})
