/**
 * The index that substrings of messages are found by: trigrams of the text, with the Mailbox as first column. It needs the
 * extensions pg_trgm and btree_gin, which a database that is not ours may not let us make: then there is none, search
 * walks through the Mailbox instead, and the log says so once with what to do.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"

export interface SearchIndex {
  readonly exists: boolean
  /** Whether letters other than those of ASCII have trigrams, which is up to the database's locale. */
  readonly knowsAllLetters: boolean
}

const name = "message_search"

/**
 * The list of pending entries is kept short: a search reads all of it, and whoever fills it clears it.
 */
const definition = `create index if not exists ${name} on message_content using gin (identity_id, search_text gin_trgm_ops)
  with (fastupdate = on, gin_pending_list_limit = 2048) where identity_id is not null`

/** In a subtransaction of its own, so that a refusal leaves the migrations as they are. */
const made = `do $$ begin
  create extension if not exists pg_trgm;
  create extension if not exists btree_gin;
  ${definition};
exception when insufficient_privilege or undefined_file or feature_not_supported or undefined_object then
  raise notice 'no search index: %', sqlerrm;
end $$`

/** What there is, as readers find it. */
export const present = (sql: Sql): Effect.Effect<SearchIndex, SqlError.SqlError> =>
  Effect.gen(function* () {
    const [index] = yield* sql<{ valid: boolean }>`
      select indisvalid as valid from pg_index where indexrelid = to_regclass(${name})`
    if (index?.valid !== true) return { exists: false, knowsAllLetters: false }
    const [letters] = yield* sql<{ known: boolean }>`select cardinality(show_trgm('жук')) > 0 as known`
    return { exists: true, knowsAllLetters: letters!.known }
  })

/** Makes the index where there is none and it can be had. On a large table whose extensions came later it takes minutes. */
export const ensure = Effect.fnUntraced(function* (sql: Sql) {
  if ((yield* present(sql)).exists) return
  yield* sql.unsafe(made)
  if ((yield* present(sql)).exists) return
  yield* Effect.logWarning(
    "Search works without its index, and is slow in large Mailboxes: this database does not let the service create the " +
      "extensions pg_trgm and btree_gin. Have its administrator run `create extension pg_trgm; create extension btree_gin;` " +
      "in it, and start the service again.",
  )
})
