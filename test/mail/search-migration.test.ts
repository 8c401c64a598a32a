/** What an older version stored is found like what this one stores. */
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import * as Segmenting from "@svc/cluster/mail/search/Segmenting"
import { backfill } from "@svc/cluster/store/migrations/0043_search"
import { Unhurried, Writes } from "@svc/cluster/store/Database"
import { migrate, migrateTo, waiting } from "@svc/cluster/store/Migrations"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fold, searchText } from "@svc/domain/mail/SearchText"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { makeOrg, storesLayer } from "../harness/Stores.ts"

layer(storesLayer)("the migration of search", (it) => {
  it.effect("folds and parts what is there as new messages are", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org = yield* makeOrg
      yield* sql`insert into handle (canonical, handle, org_id, registered_at) values ('old', 'old', ${org}::uuid, now())`
      const [identity] = yield* sql<{ id: string }>`
        insert into identity (id, canonical, handle, org_id, status, saga, created_at)
        values (uuidv7(), 'old', 'old', ${org}::uuid, 'ready', '{}', now()) returning id`
      const message = {
        from: { address: "Zoë@Example.org", name: "Zoë Müller" },
        to: [
          { address: "ada@mail.localhost", name: null },
          { address: "b@x.org", name: "Łukasz" },
        ],
        cc: [{ address: "c@x.org", name: "Carl Gauß" }],
        bcc: [],
        subject: "Ærø  – größte\tFreude",
        attachments: [{ index: 0, filename: "Résumé.pdf", content_type: "application/pdf", size: 1 }],
      }
      const body = "Ein ﬁtter Text\nmit İ, Đ und ж"
      const [stored] = yield* sql<{ id: string }>`
        insert into message (id, identity_id, uid, direction, thread_id, envelope_from, recipient, sha256, size, summary, received_at)
        values (uuidv7(), ${identity!.id}::uuid, 1, 'inbound', uuidv7(), '', '', '', 1, ${JSON.stringify(message)}::jsonb, now())
        returning id`
      yield* sql`
        insert into message_content (message_id, raw, headers, search_text, created_at)
        values (${stored!.id}::uuid, '', '[]', ${body.toLowerCase()}, now())`
      yield* sql.unsafe(backfill)
      const [row] = yield* sql<{ identity_id: string; search_text: string }>`
        select identity_id, search_text from message_content where message_id = ${stored!.id}::uuid`
      expect(row).toEqual({ identity_id: identity!.id, search_text: searchText(message, [body]) })
      expect(row!.search_text.endsWith(fold(body))).toBe(true)
    }),
  )
})

/** The first migration that knows segments. */
const segments = 167

layer(storesLayer, { timeout: "60 seconds" })("a store of before segments", (it) => {
  /** A Mailbox of so many messages, as an older version left it: of each hundred, the first has a word of its own. */
  const mailbox = Effect.fnUntraced(function* (org: string, handle: string, messages: number) {
    const sql = yield* Unhurried
    yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${org}::uuid, now())`
    const [identity] = yield* sql<{ id: IdentityId }>`
      insert into identity (id, canonical, handle, org_id, status, saga, created_at)
      values (uuidv7(), ${handle}, ${handle}, ${org}::uuid, 'ready', '{}', now()) returning id`
    yield* sql`
      insert into mailbox (identity_id, uid_next, uid_validity, imap_verifier, created_at)
      values (${identity!.id}, ${messages + 1}::int, 1, '', now())`
    yield* sql`
      with made as (
        insert into message (id, identity_id, uid, direction, thread_id, envelope_from, recipient, sha256, size, summary, received_at)
        select uuidv7(), ${identity!.id}::uuid, n, 'inbound', uuidv7(), '', '', '', 1, jsonb_build_object(
          'from', null, 'to', '[]'::jsonb, 'cc', '[]'::jsonb, 'bcc', '[]'::jsonb, 'reply_to', '[]'::jsonb, 'subject', '',
          'snippet', n::text, 'attachments', '[]'::jsonb), now()
        from generate_series(1, ${messages}::int) n returning id, uid
      )
      insert into message_content (message_id, identity_id, raw, headers, search_text, created_at)
      select id, ${identity!.id}::uuid, '', '[]', case when uid % 100 = 1 then 'the seldom word' else 'as all others' end, now()
      from made`
    return identity!.id
  })

  const found = Effect.fnUntraced(function* (id: IdentityId, query: string) {
    const queries = yield* MessageQueries
    const { messages } = yield* queries.list(id, { limit: 50, offset: 0, query })
    return messages.map(({ snippet }) => Number(snippet))
  })

  it.effect("is searched right after the migration, and by segments once they are made", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      yield* sql.unsafe("drop schema public cascade")
      yield* sql.unsafe("create schema public")
      const { missing } = yield* waiting
      expect(yield* migrateTo(missing.filter((number) => number < segments))).toEqual([])
      const org = yield* makeOrg
      const large = yield* mailbox(org, "large", 600)
      const small = yield* mailbox(org, "small", 5)
      // In place of the one of trigrams, whose extension not every server has.
      yield* sql`create index message_search on message_content (created_at)`
      yield* migrate

      const due = sql<{ id: string; segment: number; built: boolean }>`
        select identity_id as id, segment, built from search_due order by segment`
      const isThere = Effect.map(
        sql<{ former: boolean }>`select to_regclass('message_search') is not null as former`,
        ([row]) => row!.former,
      )
      const look = Effect.gen(function* () {
        expect(yield* found(large, "seldom")).toEqual([501, 401, 301, 201, 101, 1])
        expect(yield* found(large, "nowhere")).toEqual([])
        expect(yield* found(small, "seldom")).toEqual([1])
      })
      // What is not full yet has no segment to be made of.
      expect(yield* due).toEqual([0, 1].map((segment) => ({ id: large, segment, built: false })))
      yield* look
      yield* Segmenting.removeFormer
      expect(yield* isThere).toBe(true)
      expect(yield* Segmenting.run).toBe(2)
      yield* Segmenting.removeFormer
      expect(yield* isThere).toBe(false)
      expect(yield* due).toEqual([])
      yield* look
      // It is the segments that were asked.
      yield* sql`delete from search_segment where segment = 1`
      expect(yield* found(large, "seldom")).toEqual([201, 101, 1])
    }),
  )
})
