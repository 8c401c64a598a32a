/** Outgoing mail of several Identities in one process: leased, checked and recorded in shared statements. */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { system } from "@svc/domain/account/Initiator"
import * as Ownership from "@svc/cluster/actor/Ownership"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import { SendingGate } from "@svc/cluster/mail/sending/outbox/SendingGate"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { makeOrg, waitUntil } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"
import { insertAccepted, now } from "./AcceptedMessages.ts"

interface Owner {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

/** Creates ready Identities in one Org; the Identity grace has a Webhook for mail that was sent or bounced. */
const people = Effect.gen(function* () {
  const org_id = yield* makeOrg
  const identities = yield* Identities
  for (const handle of ["ada", "grace"]) {
    yield* ask(identities.of(handle).Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  }
  const ready = Effect.flatMap(Reads, (sql) => sql`select from identity where org_id = ${org_id} and status = 'ready'`)
  yield* waitUntil(ready, (rows) => rows.length === 2)
  const webhook = { org_id, webhook_id: yield* makeUuidV7, url: "http://127.0.0.1:9/", description: null }
  yield* ask(identities.of("grace").RegisterWebhook({ ...webhook, event_types: ["email.sent", "email.bounced"] }))
}).pipe(Effect.provide(actorProcess()))

const ownerOf = (handle: string) =>
  Effect.flatMap(Writes, (sql) =>
    Effect.map(
      sql<Owner>`select id, org_id as "orgId", handle from identity where canonical = ${handle}`,
      ([row]) => row!,
    ),
  )

const statuses = Effect.fnUntraced(function* (messages: ReadonlyArray<string>) {
  const sql = yield* Reads
  const rows = yield* sql<{ id: string; status: string; rows_left: number; next: Date | null }>`
    select g.message_id as id, r.status, g.rows_left, o.next_attempt_at as next
    from outgoing g join outgoing_recipient r on r.message_id = g.message_id join outbox o on o.id = r.outbox_id`
  return messages.map((message) => rows.find(({ id }) => id === message)!)
})

/** Returns the Identities whose Events report these messages as sent. */
const reportedAsSent = Effect.fnUntraced(function* (messages: ReadonlyArray<string>) {
  const sql = yield* Reads
  const rows = yield* sql<{ identity_id: string; handle: string; id: string; sent_at: string }>`
    select identity_id, handle, data ->> 'message_id' as id, data ->> 'sent_at' as sent_at from event where type = 'email.sent'`
  return messages.map((message) => rows.filter(({ id }) => id === toPublic("msg_", message)))
})

const reply = (text: string) => ({ code: 250, status: "2.0.0", text, host: "mx.x.example" })

layer(Layer.mergeAll(Outbox.layer, SendingGate.layer).pipe(Layer.provideMerge(sharedServices)), {
  timeout: "60 seconds",
})("outgoing mail of several Identities", (it) => {
  it.effect("is recorded independently when attempts end together", () =>
    Effect.gen(function* () {
      yield* people
      const sql = yield* Writes
      const queue = yield* Outbox
      const [ada, grace] = [yield* ownerOf("ada"), yield* ownerOf("grace")]
      // One message is sent, one has lost its lease, one is deferred, and one belongs to an Identity with a Webhook.
      const owners = [ada, ada, grace, grace]
      const messages = yield* Effect.forEach(owners, (owner) => insertAccepted(owner.id))
      const at = yield* now
      const lease = (owner: Owner) => queue.lease({ identityId: owner.id, now: at, atMost: 4 })
      const leases = yield* Effect.all([lease(ada), lease(grace)], { concurrency: "unbounded" })
      const all = leases.flatMap(({ leased }) => leased)
      expect(leases.map(({ leased }) => leased.length)).toEqual([2, 2])
      const leased = messages.map(({ message }) => all.find(({ message_id }) => message_id === message)!)
      expect(leased.map(({ addresses }) => addresses)).toEqual(messages.map(() => ["b@x.example"]))
      const later = new Date(at.getTime() + 61_000)
      yield* sql`update outbox set attempt_started_at = ${later} where id = ${leased[1]!.id}`

      // Each attempt has its own time.
      const ended = (index: number) => new Date(at.getTime() + index * 1_000)
      const recorded = yield* Effect.forEach(
        owners,
        (owner, index) => {
          const state = index === 2 ? ("deferred" as const) : ("sent" as const)
          return queue.record(
            owner,
            leased[index]!,
            [{ recipient: "b@x.example", state, reply: reply("Ok") }],
            ended(index),
          )
        },
        { concurrency: "unbounded" },
      )
      // Only the Identity with a Webhook has due deliveries; both of its attempts report them.
      expect(recorded).toEqual([false, false, true, true])
      const ids = messages.map(({ message }) => message)
      expect(yield* statuses(ids)).toMatchObject([
        { status: "sent", rows_left: 0, next: null },
        { status: "queued", rows_left: 1 },
        { status: "deferred", rows_left: 1, next: new Date(ended(2).getTime() + 300_000) },
        { status: "sent", rows_left: 0, next: null },
      ])
      const sent = (index: number) => ({ sent_at: ended(index).toISOString() })
      expect(yield* reportedAsSent(ids)).toMatchObject([
        [{ ...sent(0), identity_id: ada.id, handle: "ada" }],
        [],
        [],
        [{ ...sent(3), identity_id: grace.id, handle: "grace" }],
      ])
      yield* sql`update outbox set next_attempt_at = null`
    }),
  )

  it.effect("is recorded even if the database rejects another record of the same statement", () =>
    Effect.gen(function* () {
      const queue = yield* Outbox
      const ada = yield* ownerOf("ada")
      const messages = yield* Effect.forEach([1, 2], () => insertAccepted(ada.id))
      const at = yield* now
      const { leased } = yield* queue.lease({ identityId: ada.id, now: at, atMost: 4 })
      expect(leased).toHaveLength(2)
      const ends = yield* Effect.forEach(
        leased,
        (row, index) => {
          // PostgreSQL's jsonb cannot contain NUL.
          const outcome = {
            recipient: "b@x.example",
            state: "sent" as const,
            reply: reply(index === 0 ? "\0" : "Ok"),
          }
          return Effect.exit(queue.record(ada, row, [outcome], at))
        },
        { concurrency: "unbounded" },
      )
      expect(ends.map(Exit.isSuccess)).toEqual([false, true])
      const found = yield* statuses(messages.map(({ message }) => message))
      expect(found.map(({ status }) => status).toSorted()).toEqual(["queued", "sent"])
    }),
  )

  it.effect("has due deliveries after a bounce that a Webhook receives", () =>
    Effect.gen(function* () {
      const queue = yield* Outbox
      const recorded: Array<boolean> = []
      for (const owner of [yield* ownerOf("ada"), yield* ownerOf("grace")]) {
        yield* insertAccepted(owner.id)
        const at = yield* now
        const { leased } = yield* queue.lease({ identityId: owner.id, now: at, atMost: 1 })
        const outcome = { recipient: "b@x.example", state: "refused" as const, reply: null }
        recorded.push(yield* queue.record(owner, leased[0]!, [outcome], at))
      }
      expect(recorded).toEqual([false, true])
    }),
  )

  it.effect("raises one Event when all rows of a message end together", () =>
    Effect.gen(function* () {
      const queue = yield* Outbox
      const ada = yield* ownerOf("ada")
      const { message } = yield* insertAccepted(ada.id, ["x.example", "y.example"])
      const at = yield* now
      const { leased } = yield* queue.lease({ identityId: ada.id, now: at, atMost: 4 })
      expect(leased.map(({ domain }) => domain).toSorted()).toEqual(["x.example", "y.example"])
      yield* Effect.forEach(
        leased,
        (row) => queue.record(ada, row, [{ recipient: row.addresses[0]!, state: "sent", reply: null }], at),
        { concurrency: "unbounded" },
      )
      expect(yield* statuses([message])).toMatchObject([{ status: "sent", rows_left: 0 }])
      expect((yield* reportedAsSent([message]))[0]).toHaveLength(1)
    }),
  )

  it.effect("is not leased or sent for a stopped Identity, and continues for the others", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const queue = yield* Outbox
      const gates = yield* SendingGate
      const owners = [yield* ownerOf("ada"), yield* ownerOf("grace")]
      const rows = yield* Effect.forEach(owners, ({ id }) => insertAccepted(id))
      const at = yield* now
      const lease = Effect.forEach(owners, ({ id }) => queue.lease({ identityId: id, now: at, atMost: 1 }), {
        concurrency: "unbounded",
      })
      const stopped = (since: Date | null) =>
        sql`update mailbox set stopped_at = ${since} where identity_id = ${owners[0]!.id}`
      yield* stopped(at)
      const some = yield* lease
      expect(some[0]).toEqual({ leased: [], due: null })
      expect(some[1]!.leased.map(({ id }) => id)).toEqual([rows[1]!.outbox])
      yield* stopped(null)
      expect((yield* lease)[0]!.leased.map(({ id }) => id)).toEqual([rows[0]!.outbox])

      const ownerships = yield* Effect.forEach(["ada", "grace"], (id, index) =>
        Ownership.make({ kind: "Identity", id, load: Effect.succeed(owners[index]!) }),
      )
      const permits = (pairs: ReadonlyArray<readonly [number, number]>) =>
        Effect.forEach(
          pairs,
          ([owner, row]) =>
            Effect.flatMap(gates.of(owners[owner]!.id), (gate) => {
              const leased = { id: rows[row]!.outbox, started_at: at }
              return gate.enter(leased, ownerships[owner]!).mayLeave
            }),
          { concurrency: "unbounded" },
        )
      // A holder that lost the lease gets no permit.
      const outdated = { id: rows[0]!.outbox, started_at: new Date(at.getTime() - 1000) }
      const stale = Effect.flatMap(gates.of(owners[0]!.id), (gate) => gate.enter(outdated, ownerships[0]!).mayLeave)
      expect(yield* Effect.scoped(stale)).toBe(false)
      // Messages of another Identity are not sent under its name.
      expect(
        yield* permits([
          [0, 0],
          [1, 1],
          [0, 1],
        ]),
      ).toEqual([true, true, false])
      yield* stopped(at)
      yield* ownerships[0]!.write(system, (write) => gates.closed({ ...write, identity: owners[0]! }))
      expect(
        yield* permits([
          [0, 0],
          [1, 1],
        ]),
      ).toEqual([false, true])
      yield* stopped(null)
      // Nor does an Identity that is being deleted get a permit.
      const status = (status: string) => sql`update identity set status = ${status} where id = ${owners[0]!.id}`
      yield* status("deleting")
      expect(yield* permits([[0, 0]])).toEqual([false])
      yield* status("ready")
    }),
  )
})
