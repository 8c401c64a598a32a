/** Effects of a delivery attempt: which recipients are retried, which rows change, and what a bounce of a suppressed address keeps. */
import { ask } from "@svc/cluster/actor/Ask"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import type { Leased } from "@svc/cluster/mail/sending/outbox/OutboxRecords"
import { outboundOf } from "@svc/cluster/mail/sending/SendingQueries"
import { Timing } from "@svc/cluster/Timing"
import { fromPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, waitUntil } from "../harness/Actors.ts"
import { recordingTransport, reply, acceptAll } from "../harness/Transport.ts"
import { correspondent } from "./Correspondent.ts"

const transport = recordingTransport()

/** Returns whether the next attempt is shown, for each recipient of a message. */
const showNext = (ada: { readonly id: IdentityId }, sent: { readonly id: string }) =>
  Effect.map(
    Effect.flatMap(Reads, (sql) => outboundOf(sql, ada.id, fromPublic("msg_", sent.id)!)),
    (found) => found!.delivery.map(({ next_attempt_at }) => next_attempt_at !== null),
  )

layer(actors({ transport }))("a delivery attempt", (it) => {
  it.effect("retries only deferred recipients, not those that accepted or rejected the message", () =>
    Effect.gen(function* () {
      const fates = {
        has: { state: "sent", reply: reply(250, "2.0.0", "Ok") },
        not: { state: "refused", reply: reply(554, "5.7.1", "Not wanted") },
        later: { state: "deferred", reply: reply(451, "4.7.1", "Greylisted") },
      } as const
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.as(
          mayLeave,
          recipients.map((recipient) => ({ recipient, ...fates[recipient.split("@")[0] as keyof typeof fates] })),
        )
      const people = ["has@three.example", "later@three.example", "not@three.example"]
      const ada = yield* correspondent("adathrice", people)
      const sent = yield* ada.send({ to: people, text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      expect(yield* showNext(ada, sent)).toEqual([false, true, false])
      transport.answering.outside = acceptAll
      const { subscribe } = yield* ChangeFeed
      const [events, pages] = [yield* subscribe(ada.id), yield* subscribe(`${ada.org_id}/messages:${ada.handle}`)]
      yield* TestClock.adjust(Timing.outboxWaitsMillis[0]!)
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      // Streams of Events and open pages are notified of the outcome.
      yield* Effect.all([events.await, pages.await])
      const attempts = transport.transmissions.filter(({ domain }) => domain === "three.example")
      expect(attempts.map(({ recipients }) => recipients)).toEqual([people, ["later@three.example"]])
      expect((yield* ada.deliveries).map(({ status }) => status)).toEqual(["sent", "sent", "bounced"])
    }),
  )

  it.effect("is repeated for a recipient that it held back, not for one that got the message", () =>
    Effect.gen(function* () {
      const people = ["first@part.example", "second@part.example"]
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.as(
          mayLeave,
          recipients.map((recipient) =>
            recipient === people[0]
              ? { recipient, state: "sent" as const, reply: reply(250, "2.0.0", "Ok") }
              : { recipient, state: "held" as const, reply: null },
          ),
        )
      const ada = yield* correspondent("adapart", people)
      yield* ada.send({ to: people, text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      transport.answering.outside = acceptAll
      // Advance the clock once: a second step during the attempt would expire its permit.
      const [{ next } = { next: null }] = yield* ada.rows
      yield* TestClock.adjust(next!.getTime() - (yield* Clock.currentTimeMillis))
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.deliveries, (found) => found.every(({ status }) => status === "sent"), 0)
      const attempts = transport.transmissions.filter(({ domain }) => domain === "part.example")
      expect(attempts.map(({ recipients }) => recipients)).toEqual([people, [people[1]]])
    }),
  )

  it.effect("that lost its lease gets no permission to send, also after a stop and a start", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const proceed = yield* Deferred.make<void>()
      const permitted = yield* Deferred.make<boolean>()
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.gen(function* () {
          yield* Deferred.succeed(reached, undefined)
          yield* Deferred.await(proceed)
          yield* Deferred.succeed(permitted, yield* mayLeave)
          return recipients.map((recipient) => ({ recipient, state: "held" as const, reply: null }))
        })
      const ada = yield* correspondent("adapermit", ["late@permit.example"])
      yield* ada.send({ to: ["late@permit.example"], text: "Hello." })
      yield* Deferred.await(reached)
      // Stopping mail revokes the permit, so that the attempt has to request another.
      yield* ada.switchMail({ outgoing: "stopped" })
      yield* ada.switchMail({ outgoing: "active" })
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`
          update outbox set attempt_started_at = attempt_started_at + interval '1 second' where identity_id = ${ada.id}`,
      )
      yield* Deferred.succeed(proceed, undefined)
      expect(yield* Deferred.await(permitted)).toBe(false)
    }),
  )

  it.effect("that lost its lease gets no permission to send from a permit that is still valid", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const proceed = yield* Deferred.make<void>()
      const permitted = yield* Deferred.make<boolean>()
      // As of a process that was suspended: the attempt goes on before it learns that its lease has expired.
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            const isFirst = yield* Deferred.succeed(reached, undefined)
            yield* Deferred.await(proceed)
            if (isFirst) yield* Deferred.succeed(permitted, yield* mayLeave)
            return recipients.map((recipient) => ({ recipient, state: "held" as const, reply: null }))
          }),
        )
      const ada = yield* correspondent("adavalid", ["late@valid.example"])
      yield* ada.send({ to: ["late@valid.example"], text: "Hello." })
      yield* Deferred.await(reached)
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`
          update outbox set attempt_started_at = attempt_started_at + interval '1 minute' where identity_id = ${ada.id}`,
      )
      yield* TestClock.adjust("1 minute")
      yield* Deferred.succeed(proceed, undefined)
      expect(yield* Deferred.await(permitted)).toBe(false)
      transport.answering.outside = acceptAll
    }),
  )

  it.effect("keeps the time and the reason of the first bounce of a suppressed address", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const address = "twice@bounce.example"
      const ada = yield* correspondent("adabounce", [address])
      for (const text of ["One.", "Two."]) yield* ada.send({ to: [address], text })
      yield* waitUntil(ada.deliveries, (found) => found.length === 2 && found.every(({ status }) => status === "sent"))
      const messages = yield* Effect.flatMap(
        Reads,
        (sql) =>
          sql<{ id: string }>`select message_id as id from outgoing where identity_id = ${ada.id} order by created_at`,
      )
      const suppression = Effect.flatMap(
        Reads,
        (sql) => sql`select suppressed_at, suppression from allowed_recipient where identity_id = ${ada.id}`,
      )
      const bounce = { outbox_id: null, status: "5.1.1", hard: true, recipient: address }
      yield* ask(ada.actor.RecordBounce({ ...bounce, message_id: messages[0]!.id, diagnostic: null }))
      const first = yield* suppression
      expect(first).toMatchObject([{ suppression: "The address does not exist." }])
      yield* TestClock.adjust("1 hour")
      yield* ask(ada.actor.RecordBounce({ ...bounce, message_id: messages[1]!.id, diagnostic: "second" }))
      expect(yield* suppression).toEqual(first)
    }),
  )

  it.effect("ends when its lease went to another process, and does not change that row", () =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      transport.answering.outside = () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(ended, undefined))
      const ada = yield* correspondent("adalost", ["slow@lost.example"])
      const sent = yield* ada.send({ to: ["slow@lost.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.leased === true)
      expect(yield* showNext(ada, sent)).toEqual([false])
      yield* Effect.flatMap(
        Writes,
        (
          sql,
        ) => sql`update outbox set attempts = attempts + 1, attempt_started_at = attempt_started_at + interval '1 hour',
          next_attempt_at = next_attempt_at + interval '1 hour' where identity_id = ${ada.id}`,
      )
      const before = yield* ada.rows
      yield* waitUntil(Deferred.isDone(ended), (done) => done, "1 second")
      expect(yield* ada.rows).toEqual(before)
      transport.answering.outside = acceptAll
    }),
  )

  it.effect("does not count if it is returned, and cannot return a row leased by another process", () =>
    Effect.gen(function* () {
      const outbox = yield* Effect.provide(Outbox, Outbox.layer)
      const final = yield* Deferred.make<void>()
      transport.answering.outside = () => Effect.as(Deferred.await(final), [])
      const ada = yield* correspondent("adaback", ["slow@back.example"])
      yield* ada.send({ to: ["slow@back.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.leased === true)
      const sql = yield* Writes
      const [row] = yield* sql<{ id: string; started_at: Date }>`
        select id, attempt_started_at as started_at from outbox where identity_id = ${ada.id}`
      const later = new Date(row!.started_at.getTime() + 3_600_000)
      const leased = (started_at: Date) => ({ id: row!.id, started_at }) as unknown as Leased
      yield* outbox.giveBack(leased(new Date(row!.started_at.getTime() - 1)), later, "not mine")
      expect(yield* ada.rows).toMatchObject([{ attempts: 1, leased: true, held: null }])
      yield* outbox.giveBack(leased(row!.started_at), later, "no way out")
      expect(yield* ada.rows).toEqual([
        { domain: "back.example", attempts: 0, next: later, leased: false, held: "no way out" },
      ])
      yield* Deferred.succeed(final, undefined)
      transport.answering.outside = acceptAll
    }),
  )

  it.effect("records nothing if another process has leased its row since", () =>
    Effect.gen(function* () {
      const final = yield* Deferred.make<void>()
      const over = yield* Deferred.make<void>()
      transport.answering.outside = ({ recipients }) =>
        Deferred.await(final).pipe(
          Effect.as(recipients.map((recipient) => ({ recipient, state: "sent" as const, reply: null }))),
          Effect.tap(() => Deferred.succeed(over, undefined)),
        )
      const ada = yield* correspondent("adaother", ["slow@lease.example"])
      yield* ada.send({ to: ["slow@lease.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.leased === true)
      // Another process leases the expired row while this one is frozen.
      const stolen = yield* Effect.flatMap(
        Writes,
        (
          sql,
        ) => sql`update outbox set attempts = attempts + 1, attempt_started_at = attempt_started_at + interval '1 hour',
          next_attempt_at = next_attempt_at + interval '1 hour' where identity_id = ${ada.id} returning 1`,
      )
      expect(stolen.length).toBe(1)
      const before = yield* ada.rows
      yield* Deferred.succeed(final, undefined)
      yield* Deferred.await(over)
      // The actor sends the next message only after the outcome of the first one is recorded.
      transport.answering.outside = ({ recipients }) =>
        Effect.succeed(recipients.map((recipient) => ({ recipient, state: "sent" as const, reply: null })))
      yield* ask(ada.actor.AllowRecipient({ org_id: ada.org_id, address: "next@after.example" }))
      yield* ada.send({ to: ["next@after.example"], text: "Hello." })
      yield* waitUntil(ada.deliveries, (all) =>
        all.some(({ address, status }) => address === "next@after.example" && status === "sent"),
      )
      expect((yield* ada.rows).filter(({ domain }) => domain === "lease.example")).toEqual(before)
      expect((yield* ada.deliveries).find(({ address }) => address === "slow@lease.example")).toMatchObject({
        status: "queued",
      })
    }),
  )

  it.effect("is one of at most four of an Identity at a time, and the next begins when one has ended", () =>
    Effect.gen(function* () {
      const domains = ["d0", "d1", "d2", "d3", "d4", "d5"].map((name) => `${name}.places.example`)
      const ends = new Map(domains.map((domain) => [domain, Deferred.makeUnsafe<void>()]))
      const begun: Array<string> = []
      transport.answering.outside = (transmission) => {
        begun.push(transmission.domain)
        return Effect.andThen(Deferred.await(ends.get(transmission.domain)!), acceptAll(transmission))
      }
      const people = domains.map((domain) => `a@${domain}`)
      const ada = yield* correspondent("adaplaces", people)
      yield* ada.send({ to: people.slice(0, 5), text: "Hello." })
      const count = Effect.sync(() => begun.length)
      yield* waitUntil(count, (found) => found === 4, 0)
      // A message that arrives while all places are taken waits as well.
      yield* ada.send({ to: people.slice(5), text: "Hello." })
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.rows, (rows) => rows.length === 6, 0)
      expect([begun.length, (yield* ada.rows).filter(({ leased }) => leased).length]).toEqual([4, 4])
      for (const ended of [1, 2]) {
        yield* Deferred.succeed(ends.get(begun[ended - 1]!)!, undefined)
        yield* waitUntil(count, (found) => found === 4 + ended, 0)
      }
      for (const end of ends.values()) yield* Deferred.succeed(end, undefined)
      yield* waitUntil(ada.deliveries, (found) => found.every(({ status }) => status === "sent"), 0)
      expect(begun.toSorted()).toEqual(domains)
      transport.answering.outside = acceptAll
    }),
  )

  it.effect("is the last one only if it reached the recipient's server", () =>
    Effect.gen(function* () {
      const outbox = yield* Effect.provide(Outbox, Outbox.layer)
      const final = yield* Deferred.make<void>()
      transport.answering.outside = () => Effect.as(Deferred.await(final), [])
      const people = ["held@last.example", "late@last.example"]
      const ada = yield* correspondent("adalast", people)
      yield* ada.send({ to: people, text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.leased === true)
      const sql = yield* Writes
      const [row] = yield* sql<Leased>`
        select id, message_id, domain, attempt_started_at as started_at from outbox where identity_id = ${ada.id}`
      const at = new Date(yield* Clock.currentTimeMillis)
      const leased = { ...row!, attempts: Timing.outboxWaitsMillis.length }
      yield* outbox.record(
        { id: ada.id, orgId: ada.org_id, handle: "adalast" },
        leased,
        [
          { recipient: people[0]!, state: "held", reply: null },
          { recipient: people[1]!, state: "deferred", reply: reply(451, "4.7.1", "Greylisted") },
        ],
        at,
      )
      expect(yield* ada.deliveries).toEqual([
        { address: people[0], status: "queued", text: null },
        { address: people[1], status: "bounced", text: "Greylisted" },
      ])
      expect(yield* ada.rows).toMatchObject([{ next: new Date(at.getTime() + Timing.outboxHeldMillis), leased: false }])
      yield* Deferred.succeed(final, undefined)
      transport.answering.outside = acceptAll
    }),
  )
})
