/** `\Recent` between processes: each message is new to one session, also if several ask for it at the same time. */
import { Unhurried, Writes } from "@svc/cluster/store/Database"
import * as RecentFlag from "@svc/mail-gateway/mail/imap/store/RecentFlag"
import type { Folder } from "@svc/mail-gateway/mail/imap/session/Store"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { awaitFiber, waitUntil } from "../../harness/Actors.ts"
import { foundation } from "../../harness/Stores.ts"

layer(foundation)("The first session that reports a message", (it) => {
  it.effect("is known to a session that waited for it, and to sessions that saw less", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const writes = yield* Writes
      const [id, other] = [yield* makeUuidV7, yield* makeUuidV7]
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local session_replication_role = replica`
          yield* sql`
            insert into folder (id, identity_id, name, uid_validity, created_at)
            select id, uuidv7(), 'INBOX', 1, now() from unnest(${[id, other]}::uuid[]) id`
        }),
      )
      const claim = (upTo: number) => RecentFlag.claim(writes, { id } as Folder, upTo)
      expect(yield* claim(3)).toBe(1)
      const late = yield* sql.withTransaction(
        Effect.gen(function* () {
          const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`
            with claimed as (update folder set recent_from = 5 where id = ${id} returning 1)
            select pg_backend_pid() as pid from claimed`
          const late = yield* Effect.forkDetach(claim(6))
          const isWaiting = sql<{ waiting: boolean }>`
            select exists (select from pg_locks where not granted and ${pid}::int = any(pg_blocking_pids(pid))) as waiting`
          yield* waitUntil(isWaiting, ([row]) => row?.waiting === true, 0)
          return late
        }),
      )
      expect(yield* awaitFiber(late)).toMatchObject({ _tag: "Success", value: 5 })
      expect(yield* claim(4)).toBe(4)
      expect(yield* claim(8)).toBe(6)
      const [untouched] = yield* sql`select recent_from from folder where id = ${other}`
      expect(untouched).toEqual({ recent_from: 1 })
    }),
  )
})
