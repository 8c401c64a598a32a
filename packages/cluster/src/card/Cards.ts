/** Changing the A2A Card: the write an Identity's actor makes for it. */
import { type CardPatch, merge, StoredCard } from "@svc/domain/card/Card"
import { makeUuidV7 } from "@svc/domain/Ids"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { raiseForIdentity } from "../events/Raise.ts"
import type { Owned, Written } from "../identity/Ownership.ts"
import type { Sql } from "../store/Database.ts"

const decode = Schema.decodeUnknownEffect(StoredCard)

/** Merges the patch; what changes nothing is no change. The value is how many deliveries `card.updated` queued. */
export const patch = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  change: { readonly patch: CardPatch; readonly if_version: IfVersion },
  at: Date,
): Effect.fn.Return<Written<number> | undefined, SqlError.SqlError | NotFound | PreconditionFailed> {
  const [row] = yield* sql<{ fields: unknown; version: number }>`
    select fields, version from card where identity_id = ${identity.id}`
  if (row === undefined) return yield* new NotFound({ detail: "The Identity has no card." })
  if (!matches(change.if_version, row.version)) {
    return yield* new PreconditionFailed({ detail: `The card is at version ${row.version}.` })
  }
  const before = yield* Effect.orDie(decode(row.fields))
  const after = merge(before, change.patch)
  const changed = (Object.keys(after) as ReadonlyArray<keyof StoredCard>).filter(
    (field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]),
  )
  if (changed.length === 0) return { value: 0 }
  const eventId = yield* makeUuidV7
  const [written] = yield* sql<{ owned: boolean; queued: number }>`
    with ${fence}, changed as (
      update card set fields = ${JSON.stringify(after)}::jsonb, version = version + 1, updated_at = ${at}
      where identity_id = ${identity.id} and version = ${row.version} and exists (select from fence)
      returning identity_id
    ),
    ${raiseForIdentity(sql, "changed", { eventId, type: "card.updated", org: identity.orgId, identity, data: { changed }, at })}
    select exists (select from changed) as owned, (select count(*) from queued)::int as queued`
  return written?.owned === true ? { value: written.queued } : undefined
})
