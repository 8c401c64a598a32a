/** What an older version stored is found like what this one stores. */
import { backfill } from "@svc/cluster/store/migrations/0043_search"
import { Writes } from "@svc/cluster/store/Database"
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
