/**
 * Reads the A2A Card and the public profile. A change is visible from its commit on. A card without valid signatures (a
 * new one, or after a change of the Tunnel's password, a rotation or a stop) is signed and stored by its first reader.
 */
import { type AddressBook, Addresses, cardUrl, email, profileUrl } from "@svc/domain/Addresses"
import { cardOf, documentOf, fieldsOf, type Profile, StoredCard } from "@svc/domain/card/Card"
import { basisOf, type StoredSignatures, withSignatures } from "@svc/domain/card/CardSignature"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { NotFound } from "@svc/domain/problems/Problem"
import { isStorable } from "@svc/domain/Text"
import { Context, Effect, Layer, Schema } from "effect"
import { isLocked } from "../tunnel/TunnelQueries.ts"
import { signCard } from "../proof/CardSigning.ts"
import { SigningKeys } from "../proof/SigningKeys.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"

interface Row {
  readonly handle: string
  readonly fields: unknown
  readonly version: number
  readonly updated_at: Date
  readonly created_at: Date
  /** Whether the Tunnel requires a password. */
  readonly locked: boolean
  readonly id: string
  readonly org_id: string
  readonly status: string
  readonly signature: StoredSignatures | null
  /** Whether the Identity is stopped; then nothing is signed for it. */
  readonly stopped: boolean
}
const decode = Schema.decodeUnknownEffect(StoredCard)

const profileOf = (book: AddressBook, row: Row, stored: StoredCard, signatures: StoredSignatures | null): Profile => {
  const fields = fieldsOf(book, row.handle, stored)
  return {
    handle: row.handle,
    name: fields.name,
    description: fields.description,
    email: email(book, row.handle),
    profile_url: profileUrl(book, row.handle),
    card_url: cardUrl(book, row.handle),
    provider: fields.provider,
    skills: fields.skills,
    card: withSignatures(
      documentOf(book, row.handle, fields, row.locked),
      signatures,
      basisOf(book, row.handle, row.version, row.locked),
    ),
    created_at: row.created_at,
  }
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const writes = yield* Writes
  const keys = yield* SigningKeys
  const book = yield* Addresses
  const columns = sql`select i.handle, c.fields, c.version, c.updated_at, i.created_at,
           ${isLocked(sql, sql`i.id`)} as locked, i.id, i.org_id, i.status, c.signature,
           m.stopped_at is not null as stopped
    from identity i join card c on c.identity_id = i.id left join mailbox m on m.identity_id = i.id`

  /** Returns the signatures of the card, and signs it if it has none. */
  const signaturesOf = Effect.fnUntraced(function* (row: Row, stored: StoredCard) {
    const basis = basisOf(book, row.handle, row.version, row.locked)
    if (row.signature?.basis === basis) return row.signature
    if (row.stopped || row.status !== "ready") return null
    const key = yield* keys.signing({ id: row.id, orgId: row.org_id })
    if (key === undefined) return null
    const document = documentOf(book, row.handle, fieldsOf(book, row.handle, stored), row.locked)
    const signed = yield* signCard(book, row.handle, document, basis, key)
    const kept = yield* writes`
      with open as (
        select i.id from identity i join mailbox m on m.identity_id = i.id
        join signing_key k on k.identity_id = i.id
        where i.id = ${row.id} and i.status = 'ready' and m.stopped_at is null
          and k.kid = ${key.kid} and k.retired_at is null
        for share
      )
      update card set signature = ${JSON.stringify(signed)}::jsonb from open
      where card.identity_id = open.id and card.version = ${row.version} returning 1`
    return kept.length > 0 ? signed : null
  })

  return {
    read: Effect.fn("CardQueries.read")(function* (id: IdentityId) {
      const [row] = yield* sql<Row>`${columns} where i.id = ${id}`
      if (row === undefined) return yield* new NotFound({ detail: "The card does not exist." })
      const fields = yield* Effect.orDie(decode(row.fields))
      const signatures = yield* signaturesOf(row, fields)
      return { card: cardOf(book, row.handle, { ...row, fields, signatures }), version: row.version }
    }, orUnavailable),

    /**
     * Returns the public profile. An Identity that is not ready, is being deleted or never existed gives the same
     * result.
     */
    profile: Effect.fn("CardQueries.profile")(function* (canonical: string) {
      const [row] = isStorable(canonical)
        ? yield* sql<Row>`${columns} where i.canonical = ${canonical} and i.status = 'ready'`
        : []
      if (row === undefined) return yield* new NotFound({ detail: "The profile does not exist." })
      const fields = yield* Effect.orDie(decode(row.fields))
      const signatures = yield* signaturesOf(row, fields)
      return { profile: profileOf(book, row, fields, signatures), version: row.version, signatures }
    }, orUnavailable),
  }
})

export class CardQueries extends Context.Service<CardQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/card/CardQueries",
) {
  static readonly layer = Layer.effect(CardQueries, make).pipe(Layer.provide(SigningKeys.layer))
}
