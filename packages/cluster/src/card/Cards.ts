/** Changing the A2A Card: the write an Identity's actor makes for it. */
import { type CardPatch, merge, StoredCard } from "@svc/domain/card/Card"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { type Handling, once } from "../actor/Handling.ts"
import { commit, FenceLost, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"

const decode = Schema.decodeUnknownEffect(StoredCard)

export const handlers = ({ onReady }: Handling) => ({ PatchCard: onReady(once("PatchCard", patch)) })

/** Merges the patch; what changes nothing is no change. */
const patch = Effect.fnUntraced(function* (
  write: Write,
  change: { readonly org_id: string; readonly patch: CardPatch; readonly if_version: IfVersion },
) {
  const { sql, identity, at } = write
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
  if (changed.length === 0) return
  const written = yield* commit<{ changed: boolean }>(
    write,
    sql`changed as (
      update card set fields = ${JSON.stringify(after)}::jsonb, version = version + 1, updated_at = ${at}
      where identity_id = ${identity.id} and version = ${row.version} and exists (select from fence)
      returning identity_id
    ),
    ${raise(write, "changed", "card.updated", { changed })}`,
    { columns: sql`exists (select from changed) as changed`, raises: true },
  )
  // Only another owner can have written it between our look and our write.
  if (!written.changed) return yield* new FenceLost()
})
