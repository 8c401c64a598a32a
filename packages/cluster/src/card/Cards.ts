/**
 * Writes changes of the A2A Card. Changes that wait at the same time share one statement and one commit, in order of
 * arrival; each has its own version, Event, audit record and reply.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { type CardPatch, documentOf, fieldsOf, type KeptCard, merge, StoredCard } from "@svc/domain/card/Card"
import { basisOf, type StoredSignatures } from "@svc/domain/card/CardSignature"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Exit, Schema } from "effect"
import type { ReceivedCommand, ActorHandlers } from "../actor/ActorHandlers.ts"
import { commit, FenceLost, learned, notedAll, recalled, repeated, type Write } from "../actor/Write.ts"
import { auditWrites, notesOf } from "../audit/AuditWrite.ts"
import { causedBy, raise } from "../events/Raise.ts"
import { type CardKey, signCard } from "../proof/CardSigning.ts"
import { cachedKey } from "../proof/KeyHandlers.ts"
import { generate, insertPair, opened } from "../proof/SigningKeys.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { isLocked } from "../tunnel/TunnelQueries.ts"
import { cachedCard } from "../tunnel/Tunnels.ts"

const decode = Schema.decodeUnknownEffect(StoredCard)

/** Batches are limited well below the size of a statement, since a batch only writes its last card. */
const together = { most: 64 }

/** The parameters for signing a card. */
interface Signer {
  readonly book: AddressBook
  readonly sealing: Sealing["Service"]
}

export const handlers = ({ onReadyTogether }: ActorHandlers, signer: Signer) => ({
  PatchCard: onReadyTogether(
    (write: Write, changes: ReadonlyArray<ReceivedCommand<Change>>) => patchAll(write, changes, signer),
    together,
  ),
})

const message = "PatchCard"

interface Change {
  readonly org_id: string
  readonly patch: CardPatch
  readonly if_version: IfVersion
}

/** The result of one of several changes, after those before it. */
interface Planned {
  readonly requested: ReceivedCommand<Change>
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
  return changes.flatMap((requested): ReadonlyArray<Planned> => {
    const { patch, if_version } = requested.payload
    if (requested.commandId !== undefined && done.has(requested.commandId)) return []
    if (!matches(if_version, card.version)) return [{ requested, changed: undefined, card }]
    const before = card.fields
    const after = merge(before, patch)
    const changed = (Object.keys(patch) as ReadonlyArray<keyof CardPatch>).filter(
      (field) => !sameJson(after[field], before[field]),
    )
    if (changed.length > 0) card = { ...card, fields: after, version: card.version + 1, updated_at: at }
    return [{ requested, changed, card }]
  })
}

const commandsOf = (plans: ReadonlyArray<Planned>) =>
  plans.flatMap(({ requested: { commandId } }) => (commandId === undefined ? [] : [commandId]))

/** Merges the patches and returns the card after each. A patch that changes nothing creates no version. */
const patchAll = Effect.fnUntraced(function* (
  write: Write,
  changes: ReadonlyArray<ReceivedCommand<Change>>,
  signer: Signer,
) {
  const present = yield* recalled(write, cachedCard, read(write))
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
    const stored = changing.length === 0 ? undefined : yield* store(write, present, changing, signer)
    for (const id of stored?.repeated ?? []) done.add(id)
    if (stored !== undefined && stored.repeated.length > 0) continue
    return yield* answers(write, changes, planned, done, stored)
  }
})

/**
 * Stores all changes in one statement. If some were carried out before, the statement does nothing and returns their ids.
 */
const store = Effect.fnUntraced(function* (
  write: Write,
  present: KeptCard,
  changing: ReadonlyArray<Planned>,
  signer: Signer,
) {
  const { sql, identity, at } = write
  const last = changing.at(-1)!.card
  const signed = yield* sign(write, last, signer)
  const { notes, positions } = notesOf(changing.map(({ requested }) => requested))
  const commands = commandsOf(changing)
  const written = yield* commit<{
    changed: boolean
    repeated: ReadonlyArray<string>
    locked: boolean
    signatures: StoredSignatures | null
  }>(
    write,
    sql`${repeated(sql, message, commands)},
    ${signed.pair}
    written as (
      update card set fields = ${JSON.stringify(last.fields)}::jsonb, version = ${last.version}, updated_at = ${at},
        signature = ${signed.signature}
      where identity_id = ${identity.id} and version = ${present.version} and exists (select from fence)
        and not exists (select from repeated)
      returning identity_id, signature
    ),
    changed as (
      select c.* from unnest(
        ${changing.map(({ changed }) => JSON.stringify(changed))}::text[],
        ${changing.map(({ requested }) => causedBy(requested.by))}::text[],
        ${positions}::int[]) as c (fields, cause, note)
      where exists (select from written)
    ),
    ${raise({ ...write, by: sql`changed.cause` }, "changed", "card.updated", { changed: sql`changed.fields::jsonb` })},
    ${notedAll(sql, message, commands, "written")} ${auditWrites(sql, notes, "changed")}`,
    {
      columns: sql`exists (select from changed) as changed, array(select id::text from repeated) as repeated,
        ${isLocked(sql, identity.id)} as locked, (select signature from written) as signatures`,
      raises: true,
    },
  )
  if (written.repeated.length > 0) {
    // The statement stored no audit records. The next attempt stores those of the remaining changes, and the handler the others.
    for (const note of notes) note.taken = false
    return written
  }
  // Only another owner can have written the card between the read and this write.
  if (!written.changed) return yield* new FenceLost()
  learned(write, cachedCard, { ...last, locked: written.locked, signatures: written.signatures })
  return written
})

/**
 * Signs the card. The signature is not stored after a stop, nor if another process has just created the key. Then, or if
 * the Tunnel's password has changed, the next reader signs (`CardQueries`).
 */
const sign = Effect.fnUntraced(function* (write: Write, card: KeptCard, { book, sealing }: Signer) {
  const { sql, identity, at } = write
  const known = yield* keyOf(write, sealing)
  const pair = known === undefined ? yield* generate(sealing, identity, identity.dataKey) : undefined
  const basis = basisOf(book, identity.handle, card.version, card.locked)
  const document = documentOf(book, identity.handle, fieldsOf(book, identity.handle, card.fields), card.locked)
  const signatures = yield* signCard(book, identity.handle, document, basis, (known ?? pair)!)
  return {
    pair:
      pair === undefined
        ? sql``
        : sql`paired as (${insertPair(sql, identity.id, pair, at, sql`fence`)} returning kid),`,
    signature: sql`case
        when exists (select from mailbox where identity_id = ${identity.id} and stopped_at is not null) then null
        ${pair === undefined ? sql`` : sql`when not exists (select from paired) then null`}
        else ${JSON.stringify(signatures)}::jsonb end`,
  }
})

/** Returns the key of the Identity, opened once, or undefined if it has none yet. */
const keyOf = Effect.fnUntraced(function* (write: Write, sealing: Sealing["Service"]) {
  const known = write.memory.get(cachedKey) as CardKey | undefined
  if (known !== undefined) return known
  const { sql, identity } = write
  const [row] = yield* sql<{ kid: string; sealed: Uint8Array }>`
    select kid, sealed from signing_key where identity_id = ${identity.id} and origin = 'service' and retired_at is null`
  if (row === undefined) return undefined
  const key = yield* opened(sealing, identity, identity.dataKey, row.kid, row.sealed)
  learned(write, cachedKey, key)
  return key
})

/** Returns the reply to each change, in order; `stored` is undefined if nothing was written. */
const answers = Effect.fnUntraced(function* (
  write: Write,
  changes: ReadonlyArray<ReceivedCommand<Change>>,
  planned: ReadonlyArray<Planned>,
  done: ReadonlySet<string>,
  stored: Pick<KeptCard, "locked" | "signatures"> | undefined,
) {
  const planOf = new Map(planned.map((plan) => [plan.requested, plan]))
  const isRepeated = ({ commandId }: ReceivedCommand<Change>) => commandId !== undefined && done.has(commandId)
  // The state in memory is known to be current only after a commit. Without a change, there was no commit.
  const isRead =
    changes.some(isRepeated) || (stored === undefined && planned.some(({ changed }) => changed !== undefined))
  const present = isRead ? yield* read(write) : undefined
  return changes.map((requested): Exit.Exit<KeptCard, PreconditionFailed> => {
    const { changed, card } = planOf.get(requested) ?? {}
    if (card === undefined || isRepeated(requested)) return Exit.succeed(present!)
    if (changed === undefined) {
      return Exit.fail(new PreconditionFailed({ detail: `The card is at version ${card.version}.` }))
    }
    if (stored === undefined) return Exit.succeed(present!)
    const { locked, signatures = null } = stored
    return Exit.succeed({ ...card, locked, signatures })
  })
})

const doneOf = ({ sql }: Write, ids: ReadonlyArray<string>) =>
  Effect.map(
    sql<{ id: string }>`
      select id::text as id from actor_command where message = ${message}::text and id = any(${ids}::uuid[])`,
    (rows) => rows.map(({ id }) => id),
  )

const read = Effect.fnUntraced(function* ({ sql, identity }: Write) {
  const [row] = yield* sql<Omit<KeptCard, "fields"> & { readonly fields: unknown }>`
    select fields, version, updated_at, signature as signatures, ${isLocked(sql, identity.id)} as locked from card where identity_id = ${identity.id}`
  if (row === undefined) return yield* new NotFound({ detail: "The Identity has no card." })
  const card: KeptCard = { ...row, fields: yield* Effect.orDie(decode(row.fields)) }
  return card
})
