/**
 * Page sizes: 50 by default, 1 to 200. Lists of what an Org has few of (Identities, keys, secrets, Allowed Recipients) are
 * answered whole, up to 1,000 entries, where no limit is given.
 */
import { Effect, Schema } from "effect"
import { Text } from "./Text.ts"

export const defaultLimit = 50
export const maxLimit = 200

/** Entries of a list that is answered whole. */
export const wholeAtMost = 1000

const GivenLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxLimit }))

export const Limit = GivenLimit.annotate({ description: "How many entries at most.", default: defaultLimit }).pipe(
  Schema.withDecodingDefaultKey(Effect.succeed(defaultLimit)),
)

/** How many of the newest entries to skip; deeper pages are reached by filters. */
export const Offset = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
  .annotate({ description: "How many of the newest entries to skip.", default: 0 })
  .pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))

/** Where a list goes on. */
export const Cursor = Text.check(Schema.isMaxLength(1000)).annotate({
  description: "`next_cursor` of the page before, unchanged.",
})

export interface PageRequest {
  readonly limit: number
  readonly cursor?: string | undefined
}

/** The query of every list. */
export const paging = { limit: Limit, cursor: Schema.optionalKey(Cursor) }

/** The query of a list that is answered whole; {@link wholeList} turns it into a request for a page. */
export const wholePaging = {
  limit: Schema.optionalKey(
    GivenLimit.annotate({
      description: `How many entries at most. Without it, a response has up to ${wholeAtMost} entries, and a tool's result ${defaultLimit}.`,
    }),
  ),
  cursor: Schema.optionalKey(Cursor),
}

export const wholeList = <Query extends Partial<PageRequest>>(query: Query): Query & PageRequest => ({
  ...query,
  limit: query.limit ?? wholeAtMost,
})

/** A page: its entries under their name, and where the next one begins; null at the end. */
export const pageOf = <Name extends string, Entry extends Schema.Top>(name: Name, entry: Entry) =>
  Schema.Struct({
    ...({ [name]: Schema.Array(entry) } as { readonly [N in Name]: Schema.$Array<Entry> }),
    next_cursor: Schema.NullOr(Schema.String),
  })
