import { Writes } from "@svc/cluster/store/Database"
import { overdue as overdueMail } from "@svc/cluster/mail/sending/outbox/Outbox"
import { overdue as overdueDeliveries } from "@svc/cluster/webhooks/Deliveries"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { databaseLayer } from "../harness/Database.ts"

/** The age of the late rows of each Identity in minutes, and how many there are; `later` has a row that is not due yet. */
const queues = [
  { handle: "few", late: 1, minutes: 10 },
  { handle: "many", late: 3_000, minutes: 60 },
  { handle: "later", late: 0, minutes: 0 },
  { handle: "last", late: 2, minutes: 5 },
  { handle: "stopped", late: 2_000, minutes: 90 },
]

/** Fills both queues without foreign keys and triggers. */
const fill = Effect.gen(function* () {
  const sql = yield* Writes
  yield* sql`set local session_replication_role = replica`
  yield* sql`
    create table queued as
    select gen_random_uuid() as id, uuidv7() as hook, * from unnest(
      ${queues.map(({ handle }) => handle)}::text[], ${queues.map(({ late }) => late)}::int[], ${queues.map(({ minutes }) => minutes)}::int[]
    ) q (handle, late, minutes)`
  yield* sql`
    insert into identity (id, canonical, handle, org_id, status, saga, created_at)
    select id, handle, handle, uuidv7(), 'ready', '{}', now() from queued`
  yield* sql`
    insert into mailbox (identity_id, uid_validity, imap_verifier, created_at, stopped_at)
    select id, 1, '', now(), case when handle = 'stopped' then now() end from queued`
  yield* sql`
    insert into webhook (id, identity_id, url, event_types, status, created_at)
    select hook, id, 'https://receiver.example/', '{*}', case when handle = 'stopped' then 'disabled' else 'active' end, now() from queued`
  yield* sql`
    create view due as select q.*, case when n = 0 then now() + interval '1 hour' else now() - q.minutes * interval '1 minute' end as at
    from queued q, generate_series(0, q.late) n`
  yield* sql`
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select uuidv7(), hook, id, uuidv7(), 'email.received', 'queued', at, now() from due`
  yield* sql`
    insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
    select uuidv7(), uuidv7(), id, 'example.org', at, now() from due`
})

describe("a scan for overdue rows", () => {
  it.effect(
    "finds each Identity with a late row, longest overdue first, also behind thousands of rows of another one",
    () =>
      Effect.gen(function* () {
        const sql = yield* Writes
        yield* sql.withTransaction(fill)
        for (const overdue of [overdueDeliveries, overdueMail]) {
          expect(yield* overdue(sql, new Date(), 500)).toEqual(["many", "few", "last"])
          expect(yield* overdue(sql, new Date(), 2)).toEqual(["many", "few"])
          expect(yield* overdue(sql, new Date(Date.now() - 7 * 60_000), 500)).toEqual(["many", "few"])
        }
        // With fewer rows than the statement reads by their due times.
        for (const table of ["delivery", "outbox"]) {
          yield* sql.unsafe(`delete from ${table} where identity_id in (select id from queued where late > 1000)`)
        }
        for (const overdue of [overdueDeliveries, overdueMail]) {
          expect(yield* overdue(sql, new Date(), 500)).toEqual(["few", "last"])
        }
        yield* sql`update identity set status = 'deleting' where handle = 'few'`
        expect(yield* overdueMail(sql, new Date(), 500)).toEqual(["last"])
      }).pipe(Effect.provide(databaseLayer)),
  )

  it.effect("continues behind the Identities that it read, so that each one is reached", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      yield* sql.withTransaction(fill)
      yield* sql`
        insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
        select uuidv7(), uuidv7(), gen_random_uuid(), 'example.org', now() + interval '1 hour', now() from generate_series(1, 1000)`.pipe(
        (inserted) => sql.withTransaction(Effect.andThen(sql`set local session_replication_role = replica`, inserted)),
      )
      const found = new Set<string>()
      for (let scan = 0; scan < 12; scan++) {
        for (const handle of yield* overdueMail(sql, new Date(), 500)) found.add(handle)
      }
      expect([...found].toSorted()).toEqual(["few", "last", "many"])
    }).pipe(Effect.provide(databaseLayer)),
  )
})
