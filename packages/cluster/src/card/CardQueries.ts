/** Reads the A2A Card and the public profile. A change is visible from its commit on. */
import { type AddressBook, Addresses, cardUrl, email, profileUrl } from "@svc/domain/Addresses"
import { cardOf, documentOf, fieldsOf, type Profile, StoredCard } from "@svc/domain/card/Card"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { NotFound } from "@svc/domain/problems/Problem"
import { isStorable } from "@svc/domain/Text"
import { Context, Effect, Layer, Schema } from "effect"
import { isLocked } from "../tunnel/TunnelQueries.ts"
import { orUnavailable, Reads } from "../store/Database.ts"

interface Row {
  readonly handle: string
  readonly fields: unknown
  readonly version: number
  readonly updated_at: Date
  readonly created_at: Date
  /** Whether the Tunnel requires a password. */
  readonly locked: boolean
}
const decode = Schema.decodeUnknownEffect(StoredCard)

const profileOf = (book: AddressBook, row: Row, stored: StoredCard): Profile => {
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
    card: documentOf(book, row.handle, fields, row.locked),
    created_at: row.created_at,
  }
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const book = yield* Addresses
  const columns = sql`select i.handle, c.fields, c.version, c.updated_at, i.created_at,
           ${isLocked(sql, sql`i.id`)} as locked
    from identity i join card c on c.identity_id = i.id`

  return {
    read: Effect.fn("CardQueries.read")(function* (id: IdentityId) {
      const [row] = yield* sql<Row>`${columns} where i.id = ${id}`
      if (row === undefined) return yield* new NotFound({ detail: "The card does not exist." })
      const fields = yield* Effect.orDie(decode(row.fields))
      return { card: cardOf(book, row.handle, { ...row, fields }), version: row.version }
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
      return { profile: profileOf(book, row, yield* Effect.orDie(decode(row.fields))), version: row.version }
    }, orUnavailable),
  }
})

export class CardQueries extends Context.Service<CardQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/card/CardQueries",
) {
  static readonly layer = Layer.effect(CardQueries, make)
}
