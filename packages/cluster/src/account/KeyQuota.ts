/**
 * The number of active keys that an account may have. The first keys of Identities, which sagas create, are never
 * rejected.
 */
import { keysAtMost } from "@svc/domain/account/KeyRights"
import { AccountDeleting, KeyQuotaExhausted } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Sql } from "../store/Database.ts"

/**
 * Checks the quota in the transaction that creates a key. The keys of an Org are created one after another, so that the
 * count is exact.
 */
export const roomForKey = Effect.fnUntraced(function* (sql: Sql, org: string, at: Date) {
  const [row] = yield* sql`select 1 from org where id = ${org} and status = 'active' for no key update`
  if (row === undefined) return yield* new AccountDeleting({ detail: "The account is being deleted." })
  const [live] = yield* sql<{ n: number }>`
    select count(*)::int as n from api_key
    where org_id = ${org} and revoked_at is null and (expires_at is null or expires_at > ${at})`
  const n = live?.n ?? 0
  if (n >= keysAtMost) {
    return yield* new KeyQuotaExhausted({
      detail: `The account has ${n} live keys; at most ${keysAtMost} may be live at a time.`,
    })
  }
})
