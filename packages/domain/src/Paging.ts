/**
 * Paging of lists. A page has 1 to 200 entries, 50 by default. Short lists of an Org (Identities, keys, secrets,
 * Allowed Recipients) are returned whole if the caller gives no limit, up to 1,000 entries.
 */
import { Effect, Schema } from "effect"
import { Text } from "./Text.ts"

export const defaultLimit = 50
export const maxLimit = 200

/** Maximum number of entries of a list that is returned whole. */
const wholeAtMost = 1000

const GivenLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxLimit }))

export const Limit = GivenLimit.annotate({ description: "Maximum number of entries.", default: defaultLimit }).pipe(
  Schema.withDecodingDefaultKey(Effect.succeed(defaultLimit)),
)

/** Number of newest entries to skip. Filters reach older entries. */
export const Offset = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
  .annotate({ description: "Number of newest entries to skip.", default: 0 })
  .pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))

/** The position at which the next page starts. */
export const Cursor = Text.check(Schema.isMaxLength(1000)).annotate({
  description: "`next_cursor` of the previous page, unchanged.",
})

export interface PageRequest {
  readonly limit: number
  readonly cursor?: string | undefined
}

/** Query parameters of every list. */
export const paging = { limit: Limit, cursor: Schema.optionalKey(Cursor) }

/** Query parameters of a list that is returned whole by default; {@link wholeList} applies the default. */
export const wholePaging = {
  limit: Schema.optionalKey(
    GivenLimit.annotate({
      description: `Maximum number of entries. Without it, a response has up to ${wholeAtMost} entries, and a tool's result ${defaultLimit}.`,
    }),
  ),
  cursor: Schema.optionalKey(Cursor),
}

export const wholeList = <Query extends Partial<PageRequest>>(query: Query): Query & PageRequest => ({
  ...query,
  limit: query.limit ?? wholeAtMost,
})

/** Returns the schema of a page: the entries under their name, and a cursor that is null on the last page. */
export const pageOf = <Name extends string, Entry extends Schema.Top>(name: Name, entry: Entry) =>
  Schema.Struct({
    ...({ [name]: Schema.Array(entry) } as { readonly [N in Name]: Schema.$Array<Entry> }),
    next_cursor: Schema.NullOr(Schema.String),
  })
