/** Outgoing mail whose process crashed before the delivery or before recording the outcome (docs/crash-matrix.md "Mail out"). */
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import { releaseHeldMail } from "@svc/cluster/mail/sending/outbox/OutboxQueue"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { pause } from "@svc/cluster/store/Deadline"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { awaitFiber, makeOrg, waitUntil } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"
import { recordingTransport, acceptAll } from "../harness/Transport.ts"
import { insertAccepted, now } from "./AcceptedMessages.ts"

const outgoingRow = (message: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ status: string; attempts: number }>`
        select r.status, o.attempts from outgoing_recipient r join outbox o on o.id = r.outbox_id where r.message_id = ${message}`,
      ([row]) => row,
    ),
  )
/** Outbox statements that are in progress. */
const underWay = Effect.flatMap(
  Reads,
  (sql) => sql<{ waits: boolean }>`
    select wait_event_type is not distinct from 'Lock' as waits from pg_stat_activity
    where state = 'active' and query like '%outbox o%' and datname = current_database() and pid <> pg_backend_pid()`,
)
const isSent = (row: { readonly status: string } | undefined) => row?.status === "sent"
/** Advances the clock only until the attempt has begun: its permit expires after two seconds. */
const untilAttempt = (number: number) => (row: { readonly attempts: number } | undefined) =>
  (row?.attempts ?? 0) < number ? "1 second" : 0

layer(sharedServices, { timeout: "60 seconds" })("outgoing mail of a crashed process", (it) => {
  it.effect("is sent by the next owner, and sent again with the same bytes if the outcome was not recorded", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const identity_id = yield* makeUuidV7
      const transport = recordingTransport()
      yield* Effect.gen(function* () {
        yield* ask((yield* Identities).of("ada").Create({ org_id, identity_id, handle: "ada" }))
        const ready = Effect.flatMap(
          Reads,
          (sql) => sql<{ status: string }>`select status from identity where id = ${identity_id}`,
        )
        yield* waitUntil(ready, ([row]) => row?.status === "ready")
      }).pipe(Effect.provide(actorProcess(undefined, transport)))

      // The first process crashed between the commit and the delivery.
      const { message, outbox } = yield* insertAccepted(identity_id)
      yield* waitUntil(outgoingRow(message), isSent, untilAttempt(1)).pipe(
        Effect.provide(actorProcess(undefined, transport)),
      )
      expect(transport.transmissions.length).toBe(1)

      // Another process crashed between the remote 250 and the record: no running process holds the lease.
      const sql = yield* Writes
      const at = yield* now
      yield* sql`update outgoing set status = 'queued', rows_left = 1 where message_id = ${message}`
      yield* sql`update outgoing_recipient set status = 'queued' where message_id = ${message}`
      yield* sql`update outbox set attempt_started_at = ${at}, next_attempt_at = ${new Date(at.getTime() + 60_000)} where id = ${outbox}`
      const repeated = yield* waitUntil(outgoingRow(message), isSent, untilAttempt(2)).pipe(
        Effect.provide(actorProcess(undefined, transport)),
      )
      expect(repeated.millis).toBeGreaterThanOrEqual(60_000)
      const [first, second] = transport.transmissions
      expect(transport.transmissions.length).toBe(2)
      expect(Buffer.from(second!.content).equals(Buffer.from(first!.content))).toBe(true)
      expect(Buffer.from(second!.content).toString()).toContain(`<${message}@mail.localhost>`)
      expect(second!.envelopeFrom).toBe(first!.envelopeFrom)
    }),
  )

  it.effect("is not recorded by a process that lost the lease", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [owner] = yield* sql<{ id: string; orgId: string; handle: string }>`
        select id, org_id as "orgId", handle from identity where canonical = 'ada'`
      const { message, outbox } = yield* insertAccepted(owner!.id)
      const at = yield* now
      const queue = yield* Outbox
      const lease = (now: Date) => queue.lease({ identityId: owner!.id, now, atMost: 4 })
      const {
        leased: [leased],
      } = yield* lease(at)
      expect(leased!.id).toBe(outbox)
      expect(yield* lease(at)).toEqual({ leased: [], due: new Date(at.getTime() + 60_000) })
      const later = new Date(at.getTime() + 61_000)
      const {
        leased: [other],
      } = yield* lease(later)
      expect(yield* queue.renew([leased!], later)).toEqual([leased])
      // The row may be leased twice by one process: only its newest lease is renewed.
      expect(yield* queue.renew([leased!, other!], later)).toEqual([leased])
      const sent = [{ recipient: "b@x.example", state: "sent" as const, reply: null }]
      yield* queue.record(owner!, leased!, sent, later)
      expect(yield* outgoingRow(message)).toEqual({ status: "queued", attempts: 2 })
      yield* queue.record(owner!, other!, sent, later)
      expect(yield* outgoingRow(message)).toEqual({ status: "sent", attempts: 2 })
    }).pipe(Effect.provide(Outbox.layer)),
  )

  it.effect("keeps the lease of an attempt when another process with a transport starts", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [owner] = yield* sql<{ id: string }>`select id from identity where canonical = 'ada'`
      const { outbox } = yield* insertAccepted(owner!.id)
      const at = yield* now
      const queue = yield* Outbox
      const lease = (time: Date) => queue.lease({ identityId: owner!.id, now: time, atMost: 4 })
      const release = Layer.build(releaseHeldMail).pipe(Effect.provide(recordingTransport().layer), Effect.scoped)
      const row = sql<{ due: Date; held: string | null }>`
        select next_attempt_at as due, held from outbox where id = ${outbox}`
      const held = (yield* lease(at)).leased.find(({ id }) => id === outbox)
      const later = new Date(at.getTime() + 3_600_000)
      yield* queue.giveBack(held!, later, "No relay is configured.")
      yield* release
      expect(yield* row).toEqual([{ due: at, held: null }])
      // The restore of a backup postpones mail for longer, and only an operator releases it.
      const restored = { due: new Date(at.getTime() + 86_400_000), held: "restored" }
      yield* sql`update outbox set next_attempt_at = ${restored.due}, held = ${restored.held} where id = ${outbox}`
      yield* release
      expect(yield* row).toEqual([restored])
      yield* sql`update outbox set next_attempt_at = ${at}, held = null where id = ${outbox}`

      const { leased } = yield* lease(at)
      expect(leased.map(({ id }) => id)).toContain(outbox)
      const before = yield* row
      yield* release
      expect(yield* row).toEqual(before)
      expect(before[0]!.due).toEqual(new Date(at.getTime() + 60_000))

      // An attempt at mail that is held clears the reason, so the release leaves it alone.
      yield* queue.giveBack(
        leased.find(({ id }) => id === outbox)!,
        at,
        "No relay is configured.",
      )
      expect((yield* lease(at)).leased.map(({ id }) => id)).toContain(outbox)
      yield* release
      expect(yield* row).toEqual(before)
      yield* sql`delete from outbox where id = ${outbox}`
    }).pipe(Effect.provide(Outbox.layer)),
  )

  it.effect("is due immediately if its process shut down during an attempt", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [owner] = yield* sql<{ id: string }>`select id from identity where canonical = 'ada'`
      const transport = recordingTransport()
      transport.answering.outside = () => Effect.never
      const { message, outbox } = yield* insertAccepted(owner!.id)
      const attempted = Effect.map(outgoingRow(message), () => transport.transmissions.length)
      const leaving = yield* Effect.forkChild(
        waitUntil(attempted, (count) => count === 1, "1 second").pipe(
          Effect.provide(actorProcess(undefined, transport)),
        ),
      )
      const row = sql<{ due: Date; leased: boolean; attempts: number }>`
        select next_attempt_at as due, attempt_started_at is not null as leased, attempts from outbox where id = ${outbox}`
      const {
        value: [shutdown],
      } = yield* waitUntil(row, () => leaving.pollUnsafe() !== undefined, "1 second")
      expect(shutdown).toMatchObject({ leased: false, attempts: 0 })
      expect(shutdown!.due.getTime()).toBeLessThanOrEqual((yield* now).getTime())

      transport.answering.outside = acceptAll
      yield* waitUntil(outgoingRow(message), isSent, untilAttempt(1)).pipe(
        Effect.provide(actorProcess(undefined, transport)),
      )
      const [first, second] = transport.transmissions
      expect(transport.transmissions.length).toBe(2)
      expect(Buffer.from(second!.content).equals(Buffer.from(first!.content))).toBe(true)
    }),
  )

  it.effect("is not leased if its process shut down during the leasing statement", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [owner] = yield* sql<{ id: string }>`select id from identity where canonical = 'ada'`
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(actorProcess(undefined, recordingTransport()), scope)
      const { outbox } = yield* insertAccepted(owner!.id)
      const shutdown = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`lock table mailbox in access exclusive mode`
          yield* ask(Context.get(context, Identities).of("ada").Work(undefined, { discard: true }))
          yield* waitUntil(underWay, (statements) => statements.some(({ waits }) => waits), 0)
          const leaving = yield* Effect.forkIn(Scope.close(scope, Exit.void), yield* Effect.scope)
          // Gives the shutdown time to interrupt its fibers while the statement is still running.
          yield* pause(300)
          return leaving
        }),
      )
      yield* awaitFiber(shutdown, "1 millis")
      yield* waitUntil(underWay, (statements) => statements.length === 0, 0)
      const row = yield* sql<{ leased: boolean }>`
        select attempt_started_at is not null as leased from outbox where id = ${outbox}`
      expect(row).toEqual([{ leased: false }])
    }).pipe(Effect.scoped),
  )
})
