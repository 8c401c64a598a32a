/** Changing the A2A Card: the write an Identity's actor makes for it. */
import { type CardPatch, type KeptCard, merge, StoredCard } from "@svc/domain/card/Card"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { type Handling, onceElse } from "../actor/Handling.ts"
import { commit, FenceLost, learned, recalled, type Write } from "../actor/Write.ts"
import { alsoNoted } from "../audit/Note.ts"
import { raise } from "../events/Raise.ts"
import { isLocked } from "../tunnel/Locked.ts"

const decode = Schema.decodeUnknownEffect(StoredCard)

export const handlers = ({ onReady }: Handling) => ({
  PatchCard: onReady(onceElse("PatchCard", patch, (write) => read(write))),
})

/** Merges the patch, and answers the card as it is then; what changes nothing is no change. */
const patch = Effect.fnUntraced(function* (
  write: Write,
  change: { readonly org_id: string; readonly patch: CardPatch; readonly if_version: IfVersion },
) {
  const { sql, identity, at } = write
  const present = yield* recalled(write, part, read(write))
  if (!matches(change.if_version, present.version)) {
    return yield* new PreconditionFailed({ detail: `The card is at version ${present.version}.` })
  }
  const before = present.fields
  const after = merge(before, change.patch)
  const changed = (Object.keys(after) as ReadonlyArray<keyof StoredCard>).filter(
    (field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]),
  )
  // What is in memory is proven by a commit only, and here is none.
  if (changed.length === 0) return yield* read(write)
  const written = yield* commit<{ changed: boolean; locked: boolean }>(
    write,
    sql`changed as (
      update card set fields = ${JSON.stringify(after)}::jsonb, version = version + 1, updated_at = ${at}
      where identity_id = ${identity.id} and version = ${present.version} and exists (select from fence)
      returning identity_id
    ),
    ${raise(write, "changed", "card.updated", { changed })} ${alsoNoted(sql, write.note, "changed")}`,
    { columns: sql`exists (select from changed) as changed, ${isLocked(sql, identity.id)} as locked`, raises: true },
  )
  // Only another owner can have written it between our look and our write.
  if (!written.changed) return yield* new FenceLost()
  const card: KeptCard = { fields: after, version: present.version + 1, updated_at: at, locked: written.locked }
  learned(write, part, card)
  return write.note === undefined ? card : { ...card, noted: true }
})

const part = "card"

const read = Effect.fnUntraced(function* ({ sql, identity }: Write) {
  const [row] = yield* sql<{ fields: unknown; version: number; updated_at: Date; locked: boolean }>`
    select fields, version, updated_at, ${isLocked(sql, identity.id)} as locked from card where identity_id = ${identity.id}`
  if (row === undefined) return yield* new NotFound({ detail: "The Identity has no card." })
  const card: KeptCard = { ...row, fields: yield* Effect.orDie(decode(row.fields)) }
  return card
})
