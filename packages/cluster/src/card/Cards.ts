/**
 * Writes changes of the A2A Card. Changes that wait at the same time share one statement and one commit, in order of
 * arrival; each has its own version, Event, audit record and reply.
 */
import { type CardPatch, type KeptCard, merge, StoredCard } from "@svc/domain/card/Card"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Exit, Schema } from "effect"
import type { ReceivedCommand, ActorHandlers } from "../actor/ActorHandlers.ts"
import { commit, FenceLost, learned, notedAll, recalled, repeated, type Write } from "../actor/Write.ts"
import { auditWrites, notesOf } from "../audit/AuditWrite.ts"
import { causedBy, raise } from "../events/Raise.ts"
import { isLocked } from "../tunnel/TunnelQueries.ts"

const decode = Schema.decodeUnknownEffect(StoredCard)

/** Batches are limited well below the size of a statement, since a batch only writes its last card. */
const together = { most: 64 }

export const handlers = ({ onReadyTogether }: ActorHandlers) => ({
  PatchCard: onReadyTogether(patchAll, together),
})

const message = "PatchCard"

interface Change {
  readonly org_id: string
  readonly patch: CardPatch
  readonly if_version: IfVersion
}

/** The result of one of several changes, after those before it. */
interface Planned {
  readonly asked: ReceivedCommand<Change>
  /** The changed fields of the card; undefined if the change may not apply to this version. */
  readonly changed: ReadonlyArray<keyof StoredCard> | undefined
  /** The card after the change. */
  readonly card: KeptCard
}

const sameJson = (a: unknown, b: unknown) => a === b || JSON.stringify(a) === JSON.stringify(b)

/** Applies the changes in order and leaves out repeated ones. */
const plan = (
  present: KeptCard,
  changes: ReadonlyArray<ReceivedCommand<Change>>,
  done: ReadonlySet<string>,
  at: Date,
) => {
  let card = present
  return changes.flatMap((asked): ReadonlyArray<Planned> => {
    const { patch, if_version } = asked.payload
    if (asked.commandId !== undefined && done.has(asked.commandId)) return []
    if (!matches(if_version, card.version)) return [{ asked, changed: undefined, card }]
    const before = card.fields
    const after = merge(before, patch)
    const changed = (Object.keys(patch) as ReadonlyArray<keyof CardPatch>).filter(
      (field) => !sameJson(after[field], before[field]),
    )
    if (changed.length > 0) card = { ...card, fields: after, version: card.version + 1, updated_at: at }
    return [{ asked, changed, card }]
  })
}

const commandsOf = (plans: ReadonlyArray<Planned>) =>
  plans.flatMap(({ asked: { commandId } }) => (commandId === undefined ? [] : [commandId]))

/** Merges the patches and returns the card after each. A patch that changes nothing creates no version. */
const patchAll = Effect.fnUntraced(function* (write: Write, changes: ReadonlyArray<ReceivedCommand<Change>>) {
  const present = yield* recalled(write, part, read(write))
  const done = new Set<string>()
  const looked = new Set<string>()
  while (true) {
    const planned = plan(present, changes, done, write.at)
    const refused = commandsOf(planned.filter(({ changed }) => changed === undefined)).filter((id) => !looked.has(id))
    // A repeated change is rejected because its first attempt created a new version.
    if (refused.length > 0) {
      for (const id of yield* doneOf(write, refused)) done.add(id)
      for (const id of refused) looked.add(id)
    }
    const changing = planned.filter(({ changed }) => changed !== undefined && changed.length > 0)
    const stored = changing.length === 0 ? undefined : yield* store(write, present, changing)
    for (const id of stored?.repeated ?? []) done.add(id)
    if (stored !== undefined && stored.repeated.length > 0) continue
    return yield* answers(write, changes, planned, done, stored?.locked)
  }
})

/**
 * Stores all changes in one statement. If some were carried out before, the statement does nothing and returns their ids.
 */
const store = Effect.fnUntraced(function* (write: Write, present: KeptCard, changing: ReadonlyArray<Planned>) {
  const { sql, identity, at } = write
  const last = changing.at(-1)!.card
  const { notes, positions } = notesOf(changing.map(({ asked }) => asked))
  const commands = commandsOf(changing)
  const written = yield* commit<{ changed: boolean; repeated: ReadonlyArray<string>; locked: boolean }>(
    write,
    sql`${repeated(sql, message, commands)},
    written as (
      update card set fields = ${JSON.stringify(last.fields)}::jsonb, version = ${last.version}, updated_at = ${at}
      where identity_id = ${identity.id} and version = ${present.version} and exists (select from fence)
        and not exists (select from repeated)
      returning identity_id
    ),
    changed as (
      select c.* from unnest(
        ${changing.map(({ changed }) => JSON.stringify(changed))}::text[],
        ${changing.map(({ asked }) => causedBy(asked.by))}::text[],
        ${positions}::int[]) as c (fields, cause, note)
      where exists (select from written)
    ),
    ${raise({ ...write, by: sql`changed.cause` }, "changed", "card.updated", { changed: sql`changed.fields::jsonb` })},
    ${notedAll(sql, message, commands, "written")} ${auditWrites(sql, notes, "changed")}`,
    {
      columns: sql`exists (select from changed) as changed, array(select id::text from repeated) as repeated,
        ${isLocked(sql, identity.id)} as locked`,
      raises: true,
    },
  )
  if (written.repeated.length > 0) return written
  // Only another owner can have written the card between the read and this write.
  if (!written.changed) return yield* new FenceLost()
  learned(write, part, { ...last, locked: written.locked })
  return written
})

/** Returns the reply to each change, in order; `locked` is undefined if nothing was written. */
const answers = Effect.fnUntraced(function* (
  write: Write,
  changes: ReadonlyArray<ReceivedCommand<Change>>,
  planned: ReadonlyArray<Planned>,
  done: ReadonlySet<string>,
  locked: boolean | undefined,
) {
  const planOf = new Map(planned.map((plan) => [plan.asked, plan]))
  const isRepeated = ({ commandId }: ReceivedCommand<Change>) => commandId !== undefined && done.has(commandId)
  // Only a commit proves that the state in memory is current, and without a change there was none.
  const isRead =
    changes.some(isRepeated) || (locked === undefined && planned.some(({ changed }) => changed !== undefined))
  const present = isRead ? yield* read(write) : undefined
  return changes.map((asked): Exit.Exit<KeptCard, PreconditionFailed> => {
    const { changed, card } = planOf.get(asked) ?? {}
    if (card === undefined || isRepeated(asked)) return Exit.succeed(present!)
    if (changed === undefined) {
      return Exit.fail(new PreconditionFailed({ detail: `The card is at version ${card.version}.` }))
    }
    if (locked === undefined) return Exit.succeed(present!)
    return Exit.succeed({ ...card, locked })
  })
})

const doneOf = ({ sql }: Write, ids: ReadonlyArray<string>) =>
  Effect.map(
    sql<{ id: string }>`
      select id::text as id from actor_command where message = ${message}::text and id = any(${ids}::uuid[])`,
    (rows) => rows.map(({ id }) => id),
  )

const part = "card"

const read = Effect.fnUntraced(function* ({ sql, identity }: Write) {
  const [row] = yield* sql<{ fields: unknown; version: number; updated_at: Date; locked: boolean }>`
    select fields, version, updated_at, ${isLocked(sql, identity.id)} as locked from card where identity_id = ${identity.id}`
  if (row === undefined) return yield* new NotFound({ detail: "The Identity has no card." })
  const card: KeptCard = { ...row, fields: yield* Effect.orDie(decode(row.fields)) }
  return card
})
