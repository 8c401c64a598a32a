/**
 * What messages are found by is stored folded and in parts (`domain/mail/SearchText`), beside the Mailbox it is in, so
 * that an index can have both; a body that is stored ahead of its message belongs to no Mailbox yet. The index itself
 * needs extensions and is made where they can be had (`store/SearchIndex`).
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const address = (one: string) => `coalesce(${one} ->> 'name' || ' ', '') || coalesce(${one} ->> 'address', '')`
const joined = (list: string) =>
  `coalesce((select string_agg(${address("one")}, ' ') from jsonb_array_elements(${list}) one), '')`

/** As `fold` of the program does it. */
const folded = (text: string) =>
  `trim(regexp_replace(translate(replace(replace(replace(replace(normalize(regexp_replace(normalize(lower(${text}), nfkd),
     '[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]', '', 'g'), nfc), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'), 'øđðłı', 'oddli'),
     '[[:space:][:cntrl:]]+', ' ', 'g'))`

/** What an older version stored, made as this one stores it; housekeeping does it too, while both run side by side. */
export const backfill = `update message_content c
   set identity_id = m.identity_id,
       search_text = concat_ws(E'\\x1e',
         ${folded(`coalesce(${address("m.summary -> 'from'")}, '')`)},
         ${folded(`concat_ws(' ', ${joined("m.summary -> 'to'")}, ${joined("m.summary -> 'cc'")}, ${joined("m.summary -> 'bcc'")})`)},
         ${folded(`coalesce(m.summary ->> 'subject', '')`)},
         ${folded(`coalesce((select string_agg(one ->> 'filename', ' ') from jsonb_array_elements(m.summary -> 'attachments') one), '')`)},
         ${folded("left(c.search_text, 1048576)")})
   from message m where m.id = c.message_id and c.identity_id is null`

const statements = [
  `alter table message_content add column identity_id uuid`,
  backfill,
  `create index message_content_unclaimed on message_content (message_id) where identity_id is null`,
  // What lists ask for most, and few messages are.
  `create index message_unseen on message (identity_id, uid) where not seen`,
  `create index message_flagged on message (identity_id, uid) where flagged`,
]

export const search = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
