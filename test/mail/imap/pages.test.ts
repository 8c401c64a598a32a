/** Large folders, which are read in pages: each message once, in the order of the UIDs. */
import { Reads, Unhurried } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import * as FolderReads from "@svc/mail-gateway/mail/imap/store/FolderReads"
import type { Folder } from "@svc/mail-gateway/mail/imap/session/Store"
import { expect, layer } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { foundation } from "../../harness/Stores.ts"

const size = 10_001

layer(foundation)("A folder of 10,001 messages", (it) => {
  it.effect("is read in pages of any form, without the messages of another folder", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const [identity, id, other] = [yield* makeUuidV7, yield* makeUuidV7, yield* makeUuidV7]
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local session_replication_role = replica`
          yield* sql`
            with made as (
              insert into message (id, identity_id, uid, direction, thread_id, envelope_from, recipient, sha256, size, summary, received_at)
              select gen_random_uuid(), ${identity}::uuid, n, 'inbound', gen_random_uuid(), '', '', '', 1, '{"snippet": ""}', now()
              from generate_series(1, ${size}::int) n returning id, uid
            ),
            contents as (
              insert into message_content (message_id, identity_id, raw, headers, search_text, created_at)
              select id, ${identity}::uuid, 'x', '[]', '', now() from made
            )
            insert into placed (folder_id, uid, identity_id, message_id, modseq)
            select folder, uid, ${identity}::uuid, id, 1 from made, unnest(${[id, other]}::uuid[]) folder`
        }),
      )
      const folder = { id, name: "INBOX", use: null, uidValidity: 1, uidNext: size + 1 } as Folder
      const reads = FolderReads.make(yield* Reads, identity)
      const uids = Array.from({ length: size }, (_, n) => n + 1)
      const marks = yield* Stream.runCollect(reads.marks(folder, [[1, size]], {}))
      expect(marks.flatMap((page) => page.messages.map(({ uid }) => uid))).toEqual(uids)
      for (const [most, bytes, structure] of [
        [2_001, false, false],
        [501, false, true],
        [51, true, false],
      ] as const) {
        const found = yield* Stream.runCollect(reads.messages(folder, [[1, most]], { bytes }, structure))
        expect(found.map(({ uid }) => uid)).toEqual(uids.slice(0, most))
      }
    }),
  )
})
