/** Leases of the outbox: which rows an attempt may take, and which rows its end changes. */
import { Unhurried } from "@svc/cluster/store/Database"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import { releaseHeldMail } from "@svc/cluster/mail/sending/outbox/OutboxQueue"
import { Timing } from "@svc/cluster/Timing"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { waitUntil } from "../harness/Actors.ts"
import { foundation } from "../harness/Stores.ts"
import { recordingTransport, reply } from "../harness/Transport.ts"

const at = new Date("2026-11-01T12:00:00.000Z")
const after = (millis: number) => new Date(at.getTime() + millis)

/** Creates an Identity with a Mailbox, and an outbox row for each due time. Foreign keys and triggers are off. */
const makeQueue = Effect.fnUntraced(function* (dueMillis: ReadonlyArray<number>) {
  const sql = yield* Unhurried
  const id = yield* makeUuidV7
  const rows = yield* Effect.forEach(dueMillis, (millis) =>
    Effect.map(makeUuidV7, (row) => ({ id: row, next: after(millis) })),
  )
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`set local session_replication_role = replica`
      yield* sql`
        insert into identity (id, canonical, handle, org_id, status, saga, created_at)
        values (${id}, ${id}, ${id}, uuidv7(), 'ready', '{}', now())`
      yield* sql`insert into mailbox (identity_id, uid_validity, imap_verifier, created_at) values (${id}, 1, '', now())`
      for (const row of rows) {
        yield* sql`
          insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
          values (${row.id}, ${row.id}, ${id}, 'example.org', ${row.next}, now())`
        yield* sql`
          insert into message_content (message_id, identity_id, raw, headers, search_text, created_at)
          values (${row.id}, ${id}, '', '[]', '', now())`
        yield* sql`
          insert into outgoing (message_id, identity_id, status, rows_left, created_at) values (${row.id}, ${id}, 'queued', 1, now())`
        yield* sql`
          insert into outgoing_recipient (message_id, address, outbox_id, status, changed_at)
          values (${row.id}, 'a@example.org', ${row.id}, 'queued', now())`
      }
    }),
  )
  const outbox = yield* Outbox
  const take = (atMost: number, now = at) => outbox.lease({ identityId: id, now, atMost })
  const lease = (atMost: number, now = at) =>
    Effect.map(take(atMost, now), ({ leased, due }) => ({
      leased: leased.map((one) => rows.findIndex((row) => row.id === one.id)).toSorted(),
      due,
    }))
  /** The due times in milliseconds, in the order of the rows. */
  const due = Effect.map(
    sql<{ next: Date | null }>`
      select next_attempt_at as next from outbox where identity_id = ${id}
      order by array_position(${rows.map((row) => row.id)}::uuid[], id)`,
    (found) => found.map(({ next }) => (next === null ? null : next.getTime() - at.getTime())),
  )
  return { id, rows, take, lease, due }
})

layer(Layer.provideMerge(Outbox.layer, foundation))("A lease", (it) => {
  it.effect("takes the rows that are due for longest, at most as many as requested, and none before its time", () =>
    Effect.gen(function* () {
      const { lease } = yield* makeQueue([-1_000, 1, -3_000, 0, -2_000])
      expect(yield* lease(2)).toEqual({ leased: [2, 4], due: null })
      expect(yield* lease(9)).toEqual({ leased: [0, 3], due: null })
      // The leased rows are due again later than the last row.
      expect(yield* lease(9)).toEqual({ leased: [], due: after(1) })
      expect(yield* lease(9, after(1))).toEqual({ leased: [1], due: null })
    }),
  )

  it.effect("takes nothing of an Identity that is stopped or being deleted", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const { id, lease } = yield* makeQueue([0])
      const status = (status: string) => sql`update identity set status = ${status} where id = ${id}`
      yield* status("deleting")
      expect((yield* lease(1)).leased).toEqual([])
      yield* status("ready")
      yield* sql`update mailbox set stopped_at = now() where identity_id = ${id}`
      expect((yield* lease(1)).leased).toEqual([])
      yield* sql`update mailbox set stopped_at = null where identity_id = ${id}`
      expect((yield* lease(1)).leased).toEqual([0])
    }),
  )

  it.effect("passes over a row that another process is leasing", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const { rows, lease } = yield* makeQueue([-1_000, 0])
      const leased = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select from outbox where id = ${rows[0]!.id} for update`
          const other = yield* Effect.forkDetach(lease(2))
          return yield* Fiber.join(other)
        }),
      )
      expect(leased).toEqual({ leased: [1], due: null })
    }),
  )

  it.effect("that renews a permit waits for a process that takes the actor over, and then fails", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const outbox = yield* Outbox
      const { id, lease } = yield* makeQueue([0])
      yield* sql`insert into actor (kind, id, epoch) values ('Identity', ${id}, 1)`
      const renews = { kind: "Identity", id, epoch: 1 } as const
      const late = yield* sql.withTransaction(
        Effect.gen(function* () {
          const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`
            with taken as (update actor set epoch = 2 where id = ${id} returning 1) select pg_backend_pid() as pid from taken`
          const late = yield* Effect.forkDetach(
            Effect.flip(outbox.lease({ identityId: id, now: at, atMost: 1, renews })),
          )
          const isWaiting = sql<{ waiting: boolean }>`
            select exists (select from pg_locks where not granted and ${pid}::int = any(pg_blocking_pids(pid))) as waiting`
          yield* waitUntil(isWaiting, ([row]) => row?.waiting === true, 0)
          return late
        }),
      )
      expect(yield* Fiber.join(late)).toMatchObject({ _tag: "FenceLost" })
      expect((yield* lease(1)).leased).toEqual([0])
    }),
  )

  it.effect("is renewed, returned and ended alone, also if another one began at the same time", () =>
    Effect.gen(function* () {
      const [outbox, sql] = [yield* Outbox, yield* Unhurried]
      const { id, rows, take, due } = yield* makeQueue([-1, 0, 0])
      yield* sql`update outbox set held = 'No relay is configured.' where identity_id = ${id}`
      const { leased } = yield* take(3)
      // Otherwise, a process that starts would release the leased rows as held mail.
      expect(yield* sql`select distinct held from outbox where identity_id = ${id}`).toEqual([{ held: null }])
      const [first, second, third] = rows.map((row) => leased.find((one) => one.id === row.id)!)
      const ends = Timing.outboxLeaseMillis
      expect(yield* due).toEqual([ends, ends, ends])
      expect(yield* outbox.renew([first!], after(1_000))).toEqual([])
      expect(yield* due).toEqual([ends + 1_000, ends, ends])
      yield* outbox.giveBack(second!, after(5), null)
      expect(yield* due).toEqual([ends + 1_000, 5, ends])
      const deferred = {
        recipient: "a@example.org",
        state: "deferred" as const,
        reply: reply(451, "4.7.1", "Greylisted"),
      }
      yield* outbox.record({ id, orgId: id, handle: id }, third!, [deferred], at)
      expect(yield* due).toEqual([ends + 1_000, 5, Timing.outboxWaitsMillis[0]])
    }),
  )

  it.effect("does not end a delivery again that a bounce ended meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const outbox = yield* Outbox
      const { id, take, rows } = yield* makeQueue([0, 0, 0, 0])
      const { leased } = yield* take(4)
      const bounced = [rows[0]!.id, rows[1]!.id]
      yield* sql`update outgoing_recipient set status = 'bounced' where message_id = any(${bounced}::uuid[])`
      yield* sql`update outgoing set failed = 1 where message_id = any(${bounced}::uuid[])`
      const record = (row: { readonly id: string }) =>
        outbox.record(
          { id, orgId: id, handle: id },
          leased.find((one) => one.id === row.id)!,
          [{ recipient: "a@example.org", state: "sent", reply: reply(250, "2.0.0", "Ok") }],
          at,
        )
      // A single outcome has its own statement, and concurrent ones share another.
      yield* record(rows[0]!)
      yield* Effect.all(rows.slice(1).map(record), { concurrency: "unbounded" })
      const statuses = yield* sql<{ status: string; done: string }>`
        select r.status, o.status as done from outgoing_recipient r join outgoing o using (message_id)
        where o.identity_id = ${id} order by array_position(${rows.map((row) => row.id)}::uuid[], o.message_id)`
      expect(statuses.map(({ status, done }) => [status, done])).toEqual([
        ["bounced", "done"],
        ["bounced", "done"],
        ["sent", "done"],
        ["sent", "done"],
      ])
    }),
  )

  it.effect(
    "is earlier for mail without a transport when a process with one starts, not for restored or other mail",
    () =>
      Effect.gen(function* () {
        const sql = yield* Unhurried
        const hour = (yield* Clock.currentTimeMillis) - at.getTime() + 3_600_000
        const day = hour + 86_400_000
        const { rows, due } = yield* makeQueue([hour, hour, -1, day])
        const held = [rows[0]!.id, rows[3]!.id]
        yield* sql`update outbox set held = 'No relay is configured.' where id = any(${held}::uuid[])`
        yield* Layer.build(releaseHeldMail).pipe(Effect.provide(recordingTransport().layer), Effect.scoped)
        const [released, ...others] = yield* due
        expect(released).toBeLessThan(hour)
        expect(others).toEqual([hour, -1, day])
      }),
  )
})
