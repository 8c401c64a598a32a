/** The outbox: accepted messages are sent, retried by schedule and reported, each once. */
import { fromPublic, makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { releaseHeldMail } from "@svc/cluster/mail/sending/outbox/OutboxQueue"
import { outboundOf } from "@svc/cluster/mail/sending/SendingQueries"
import { Reads } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeOrg, waitUntil } from "../harness/Actors.ts"
import { acceptAll, deferAll, recordingTransport, refuseAll, reply } from "../harness/Transport.ts"
import { correspondent } from "./Correspondent.ts"

const transport = recordingTransport()

const sentTo = (address: string) => transport.transmissions.filter(({ recipients }) => recipients.includes(address))

layer(actors({ transport }))("the outbox", (it) => {
  it.effect("sends a message once per domain with the same bytes and reports when the last one was sent", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const ada = yield* correspondent("adaone", ["grace@one.example", "alan@one.example", "kurt@two.example"])
      const sent = yield* ada.send({
        to: ["grace@one.example", "Alan@One.Example"],
        bcc: ["kurt@two.example"],
        subject: "Notes",
        text: "Hello.",
      })
      expect(sent.status).toBe("queued")
      const { value: events } = yield* waitUntil(ada.events, (found) => found.some(({ type }) => type === "email.sent"))
      expect(events.map(({ type }) => type)).toEqual(["email.sent"])
      expect(events[0]!.data).toMatchObject({ message_id: sent.id, subject: "Notes" })
      const [one, two] = [sentTo("grace@one.example"), sentTo("kurt@two.example")]
      expect([one.length, two.length]).toEqual([1, 1])
      expect(one[0]!.recipients).toEqual(["Alan@one.example", "grace@one.example"])
      expect(Buffer.from(one[0]!.content).equals(Buffer.from(two[0]!.content))).toBe(true)
      expect(Buffer.from(one[0]!.content).toString()).not.toContain("kurt@two.example")
      expect((yield* ada.deliveries).map(({ status }) => status)).toEqual(["sent", "sent", "sent"])
      expect((yield* ada.rows).map(({ next }) => next)).toEqual([null, null])
    }),
  )

  it.effect("retries after 5 min, 15 min, 1 h, 3 h, 6 h, 12 h and 24 h with the same bytes, then bounces", () =>
    Effect.gen(function* () {
      transport.answering.outside = deferAll
      const ada = yield* correspondent("adatwo", ["slow@slow.example"])
      yield* ada.send({ to: ["slow@slow.example"], text: "Hello." })
      const attempts = () => sentTo("slow@slow.example")
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      for (const [index, wait] of Timing.outboxWaitsMillis.entries()) {
        const [row] = yield* ada.rows
        const due = row!.next!.getTime() - (yield* Effect.clockWith((clock) => clock.currentTimeMillis))
        expect(due).toBeLessThanOrEqual(wait)
        expect(due).toBeGreaterThan(wait - 10_000)
        // One second before the retry is due, no new attempt has begun.
        yield* TestClock.adjust(Math.max(0, due - 1000))
        expect(attempts().length).toBe(index + 1)
        yield* TestClock.adjust(1000)
        // The scan ends waits that are longer than an actor stays in memory. The test runs it itself.
        yield* ask(ada.actor.Work(undefined, { discard: true }))
        yield* waitUntil(ada.rows, ([now]) => now?.attempts === index + 2 && !now.leased, "10 millis")
      }
      expect(attempts().length).toBe(8)
      const first = Buffer.from(attempts()[0]!.content)
      expect(attempts().every(({ content }) => first.equals(Buffer.from(content)))).toBe(true)
      expect(new Set(attempts().map(({ envelopeFrom }) => envelopeFrom)).size).toBe(1)
      expect(yield* ada.deliveries).toEqual([{ address: "slow@slow.example", status: "bounced", text: "Greylisted" }])
      const events = yield* ada.events
      expect(events.map(({ type, data }) => [type, data["kind"], data["status"]])).toEqual([
        ["email.bounced", "soft", "4.7.1"],
      ])
    }),
  )

  it.effect("ends at a 5xx, reports each recipient, and suppresses an address that does not exist", () =>
    Effect.gen(function* () {
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.as(
          mayLeave,
          recipients.map((recipient) =>
            recipient.startsWith("gone")
              ? { recipient, state: "refused" as const, reply: reply(550, "5.1.1", "No such user") }
              : { recipient, state: "sent" as const, reply: reply(250, "2.0.0", "Ok") },
          ),
        )
      const ada = yield* correspondent("adathree", ["gone@x.example", "here@x.example"])
      const sent = yield* ada.send({ to: ["gone@x.example", "here@x.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      expect((yield* ada.deliveries).map(({ status }) => status)).toEqual(["bounced", "sent"])
      const [bounced, ...others] = yield* ada.events
      expect([bounced!.type, others]).toEqual(["email.bounced", []])
      expect(bounced!.data).toEqual({
        email_id: sent.id,
        message_id: sent.id,
        recipient: "gone@x.example",
        kind: "hard",
        status: "5.1.1",
        diagnostic: expect.stringContaining("No such user"),
        bounced_at: expect.stringMatching(/^\d{4}-.*Z$/),
      })
      const repeated = yield* Effect.flip(ada.send({ to: ["gone@x.example"], text: "Again." }))
      expect(repeated).toMatchObject({ code: "recipient_not_allowed", errors: [{ path: "/to/0" }] })
      expect(repeated.errors?.[0]?.message).toContain("suppressed")
      yield* ask(ada.actor.LiftSuppression({ org_id: ada.org_id, address: "gone@x.example" }))
      expect((yield* ada.send({ to: ["gone@x.example"], text: "Again." })).status).toBe("queued")
    }),
  )

  it.effect("does not suppress an address because of a full mailbox or unwanted mail", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("adafour", ["who@y.example"])
      const rejections = [
        reply(554, "5.7.1", "Looks like spam"),
        { ...reply(550, null, "No such user"), command: "MAIL" as const },
        { ...reply(550, null, "Relaying denied"), command: "RCPT" as const },
      ]
      for (const [index, rejection] of rejections.entries()) {
        transport.answering.outside = ({ recipients }) =>
          Effect.succeed(recipients.map((recipient) => ({ recipient, state: "refused" as const, reply: rejection })))
        expect((yield* ada.send({ to: ["who@y.example"], text: "Hello." })).status).toBe("queued")
        yield* waitUntil(ada.events, (found) => found.length === index + 1)
        expect((yield* ada.events)[index]!.data).toMatchObject({ kind: "soft" })
      }
      expect((yield* ada.send({ to: ["who@y.example"], text: "Hello." })).status).toBe("queued")
    }),
  )

  it.effect("records a later bounce once, and never for an address this Identity did not write to", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const ada = yield* correspondent("adafive", ["late@z.example"])
      const sent = yield* ada.send({ to: ["late@z.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      const message_id = yield* Effect.flatMap(Reads, (sql) =>
        Effect.map(
          sql<{ id: string }>`select message_id as id from outgoing where identity_id = ${ada.id}`,
          ([row]) => row!.id,
        ),
      )
      const bounce = { message_id, outbox_id: null, status: "5.1.1", diagnostic: "unknown", hard: true }
      yield* ask(ada.actor.RecordBounce({ ...bounce, recipient: "else@z.example" }))
      yield* ask(ada.actor.RecordBounce({ ...bounce, message_id: yield* makeUuidV7, recipient: "late@z.example" }))
      expect((yield* ada.events).map(({ type }) => type)).toEqual(["email.sent"])
      yield* ask(ada.actor.RecordBounce({ ...bounce, recipient: "Late@z.example" }))
      yield* ask(ada.actor.RecordBounce({ ...bounce, recipient: "late@z.example" }))
      expect((yield* ada.events).map(({ type }) => type)).toEqual(["email.sent", "email.bounced"])
      expect((yield* ada.events)[1]!.data).toEqual({
        email_id: sent.id,
        message_id: sent.id,
        recipient: "late@z.example",
        kind: "hard",
        status: "5.1.1",
        diagnostic: "unknown",
        bounced_at: expect.stringMatching(/^\d{4}-.*Z$/),
      })
      expect(yield* ada.deliveries).toMatchObject([{ status: "bounced" }])
      // The bounce added no Allowed Recipient and suppressed the address.
      const listed = yield* Effect.flatMap(
        Reads,
        (sql) => sql`select address, suppression from allowed_recipient where identity_id = ${ada.id}`,
      )
      expect(listed).toEqual([{ address: "late@z.example", suppression: "unknown" }])
    }),
  )

  it.effect("adds no Allowed Recipient on a bounce, also if it was removed meanwhile", () =>
    Effect.gen(function* () {
      transport.answering.outside = deferAll
      // The address is that of another account's holder.
      const address = `${yield* makeOrg}@example.org`
      const ada = yield* correspondent("adaoff", [address])
      yield* ada.send({ to: [address], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      yield* ask(ada.actor.DisallowRecipient({ org_id: ada.org_id, address }))
      transport.answering.outside = refuseAll
      yield* TestClock.adjust(Timing.outboxWaitsMillis[0]!)
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.events, (found) => found.some(({ type }) => type === "email.bounced"))
      const listed = yield* Effect.flatMap(
        Reads,
        (sql) => sql`select address from allowed_recipient where identity_id = ${ada.id}`,
      )
      expect(listed).toEqual([])
    }),
  )

  it.effect("holds queued mail while outgoing mail is stopped and sends it after the start", () =>
    Effect.gen(function* () {
      transport.answering.outside = deferAll
      const ada = yield* correspondent("adasix", ["held@held.example"])
      yield* ada.send({ to: ["held@held.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      yield* ada.switchMail({ outgoing: "stopped" })
      transport.answering.outside = acceptAll
      yield* TestClock.adjust("1 hour")
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* TestClock.adjust("10 seconds")
      expect(sentTo("held@held.example").length).toBe(1)
      expect(yield* Effect.flip(ada.send({ to: ["held@held.example"], text: "More." }))).toMatchObject({
        code: "mail_paused",
      })
      yield* ada.switchMail({ outgoing: "active" })
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      expect(sentTo("held@held.example").length).toBe(2)
    }),
  )

  it.effect("begins no DATA after a stop was acknowledged, and does not count the attempt", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const proceed = yield* Deferred.make<void>()
      const let_ = yield* Deferred.make<boolean>()
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.gen(function* () {
          yield* Deferred.succeed(reached, undefined)
          yield* Deferred.await(proceed)
          const may = yield* mayLeave
          yield* Deferred.succeed(let_, may)
          return recipients.map((recipient) => ({
            recipient,
            state: may ? ("sent" as const) : ("held" as const),
            reply: null,
          }))
        })
      const ada = yield* correspondent("adaseven", ["late@stop.example"])
      yield* ada.send({ to: ["late@stop.example"], text: "Hello." })
      yield* Deferred.await(reached)
      yield* ada.switchMail({ outgoing: "stopped" })
      yield* Deferred.succeed(proceed, undefined)
      expect(yield* Deferred.await(let_)).toBe(false)
      yield* waitUntil(ada.rows, ([row]) => row?.leased === false, 0)
      expect((yield* ada.rows)[0]!.attempts).toBe(0)
    }),
  )

  it.effect("acknowledges a stop after attempts in DATA have ended", () =>
    Effect.gen(function* () {
      const inData = yield* Deferred.make<void>()
      const final = yield* Deferred.make<void>()
      transport.answering.outside = ({ recipients, mayLeave }) =>
        Effect.gen(function* () {
          yield* mayLeave
          yield* Deferred.succeed(inData, undefined)
          yield* Deferred.await(final)
          return recipients.map((recipient) => ({ recipient, state: "sent" as const, reply: null }))
        })
      const ada = yield* correspondent("adaeight", ["now@stop.example"])
      yield* ada.send({ to: ["now@stop.example"], text: "Hello." })
      yield* Deferred.await(inData)
      const stop = yield* Effect.forkChild(ada.switchMail({ outgoing: "stopped" }))
      const stopped = Effect.flatMap(
        Reads,
        (sql) =>
          sql<{
            stopped: boolean
          }>`select stopped_at is not null as stopped from mailbox where identity_id = ${ada.id}`,
      )
      yield* waitUntil(stopped, ([row]) => row?.stopped === true, 0)
      // A stop that waits for nothing is acknowledged within a few statements.
      for (let n = 0; n < 5 && stop.pollUnsafe() === undefined; n++) yield* stopped
      expect(stop.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(final, undefined)
      yield* Fiber.join(stop)
      yield* waitUntil(ada.deliveries, ([row]) => row?.status === "sent", 0)
    }),
  )

  it.effect("is deleted with its Identity, including queued mail and drafts", () =>
    Effect.gen(function* () {
      transport.answering.outside = deferAll
      const ada = yield* correspondent("adagone", ["b@gone.example"])
      yield* ada.send({ to: ["b@gone.example"], text: "Hello." })
      yield* (yield* Drafts).create(ada.id, yield* makeUuidV7, { text: "A draft." })
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      yield* ask(ada.actor.Delete({ org_id: ada.org_id }))
      const remaining = Effect.flatMap(
        Reads,
        (sql) => sql<{ n: number }>`
          select (select count(*) from identity where id = ${ada.id})::int
               + (select count(*) from outgoing where identity_id = ${ada.id})::int
               + (select count(*) from outbox where identity_id = ${ada.id})::int
               + (select count(*) from mail_use where identity_id = ${ada.id})::int
               + (select count(*) from draft where identity_id = ${ada.id})::int
               + (select count(*) from outgoing_recipient where address = 'b@gone.example')::int as n`,
      )
      yield* waitUntil(remaining, ([row]) => row?.n === 0)
    }),
  )

  it.effect("renews its lease during a long attempt, so that no other process sends the message", () =>
    Effect.gen(function* () {
      const final = yield* Deferred.make<void>()
      transport.answering.outside = (transmission) => Effect.andThen(Deferred.await(final), acceptAll(transmission))
      const ada = yield* correspondent("adanine", ["long@long.example"])
      yield* ada.send({ to: ["long@long.example"], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.leased === true)
      for (let n = 0; n < 20; n++) {
        yield* TestClock.adjust("10 seconds")
        const now = yield* Clock.currentTimeMillis
        // The clock advances by at most a third of the lease, so that it does not run ahead of the renewals.
        yield* waitUntil(ada.rows, ([row]) => row!.next!.getTime() - now >= 40_000, 0)
      }
      expect(sentTo("long@long.example").length).toBe(1)
      yield* Deferred.succeed(final, undefined)
      yield* waitUntil(ada.deliveries, ([row]) => row?.status === "sent")
      expect(sentTo("long@long.example").length).toBe(1)
    }),
  )
})

const nowhere = recordingTransport({ by: "none", reason: "No relay is configured." })

layer(actors({ transport: nowhere }))("the outbox without a transport", (it) => {
  it.effect("delivers mail to our own domain and keeps other mail queued with a reason", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("adahome", ["grace@mail.localhost", "who@away.example"])
      const { id } = yield* ada.send({ to: ["grace@mail.localhost", "who@away.example"], text: "Hello." })
      yield* waitUntil(
        ada.rows,
        (rows) => rows.some(({ held }) => held !== null) && rows.some(({ next }) => next === null),
      )
      expect(nowhere.inside.map(({ recipients }) => recipients)).toEqual([["grace@mail.localhost"]])
      expect(nowhere.transmissions).toEqual([])
      expect(yield* ada.deliveries).toMatchObject([
        { address: "grace@mail.localhost", status: "sent" },
        { address: "who@away.example", status: "queued" },
      ])
      expect((yield* ada.rows).map(({ held, attempts }) => [held, attempts])).toEqual([
        ["No relay is configured.", 0],
        [null, 1],
      ])
      expect((yield* outboundOf(yield* Reads, ada.id, fromPublic("msg_", id)!))!.delivery).toMatchObject([
        { address: "grace@mail.localhost", reason: null },
        { address: "who@away.example", reason: "No relay is configured." },
      ])
      // A process with a transport leases the message when it starts.
      yield* Layer.build(releaseHeldMail).pipe(Effect.provide(recordingTransport().layer), Effect.scoped)
      const now = yield* Clock.currentTimeMillis
      expect((yield* ada.rows).map(({ held, next }) => [held, next !== null && next.getTime() <= now])).toEqual([
        [null, true],
        [null, false],
      ])
    }),
  )
})
