/** Inserts Orgs and Events as rows, for tests of their readers. */
import { Reads, Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"

export const makeOrg = Effect.gen(function* () {
  const sql = yield* Writes
  const id = yield* makeUuidV7
  yield* sql`
    insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
    values (${id}, ${`${id}@example.org`}, 'en', '1', now(), ''::bytea, now())`
  return id
})

/** Inserts an Event without a notification. */
export const insertEvent = Effect.fnUntraced(function* (
  org: string,
  type: string,
  identityId: string | null = null,
  at: Date = new Date(),
) {
  const sql = yield* Writes
  const id = yield* makeUuidV7
  yield* sql`
    insert into event (id, org_id, identity_id, handle, type, data, created_at)
    values (${id}, ${org}, ${identityId}, ${identityId === null ? null : "ada"}, ${type}, '{}', ${at})`
  return id
})

/**
 * Waits until no earlier transaction is running in any test, since lists omit Events that such a transaction might
 * precede.
 */
export const settled = Effect.gen(function* () {
  const sql = yield* Reads
  const [now] = yield* sql<{ xid: string }>`select pg_snapshot_xmax(pg_current_snapshot())::text as xid`
  yield* Effect.repeat(
    sql<{ past: boolean }>`select pg_snapshot_xmin(pg_current_snapshot()) >= ${now!.xid}::xid8 as past`,
    { until: ([row]) => row!.past },
  )
})
