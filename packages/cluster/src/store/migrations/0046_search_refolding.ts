import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * How far the search texts of older versions were folded again (`mail/search/Refolding`): messages up to `after` are done.
 * The row is removed when nothing is left. Processes of the former version may store messages until `until`.
 */
export const searchRefolding = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table if not exists search_refolding (
    is_only boolean primary key default true check (is_only),
    after uuid not null,
    until timestamptz not null
  )`
  yield* sql`insert into search_refolding (after, until)
    select '00000000-0000-0000-0000-000000000000', now() + interval '1 day' where exists (select from message_content)`
})
