/** Bounces and recipients: which addresses mail may not be sent to after a bounce, and which it must not allow. */
import { ask } from "@svc/cluster/actor/Ask"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { fromPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, waitUntil } from "../harness/Actors.ts"
import { receivedMail } from "../harness/Mail.ts"
import { deferAll, recordingTransport, reply } from "../harness/Transport.ts"
import { correspondent } from "./Correspondent.ts"

const transport = recordingTransport()

layer(actors({ transport }))("a bounce", (it) => {
  it.effect("adds no Allowed Recipient, and neither does mail of an unverified sender", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgetwo", [])
      const from = { address: "mallory@x.example", name: null }
      const verified = { verdict: "verified" as const, spf: "pass", dkim: "pass", dmarc: "pass", domain: "x.example" }
      yield* ask(ada.actor.ReceiveMail(yield* receivedMail({ from })))
      yield* ask(ada.actor.ReceiveMail(yield* receivedMail({ from, origin: verified, envelope_from: "" })))
      expect(yield* Effect.flip(ada.send({ to: ["mallory@x.example"], text: "Hello." }))).toMatchObject({
        code: "recipient_not_allowed",
      })
    }),
  )

  it.effect("suppresses an address that bounced, unless another recipient of its server may have forged that", () =>
    Effect.gen(function* () {
      const people = ["later@shared.example", "one@shared.example", "two@shared.example", "Alone@own.example"]
      const deferred = { state: "deferred", reply: reply(451, "4.7.1", "Greylisted") } as const
      const accepted = { state: "sent", reply: reply(250, "2.0.0", "Ok") } as const
      transport.answering.outside = ({ recipients }) =>
        Effect.succeed(
          recipients.map((recipient) => ({ recipient, ...(recipient === people[0] ? deferred : accepted) })),
        )
      const ada = yield* correspondent(
        "bounceada",
        people.map((address) => address.toLowerCase()),
      )
      const bob = yield* correspondent("bouncebob", [])
      const sent = yield* ada.send({ to: people, text: "Hello." })
      yield* waitUntil(ada.deliveries, (found) => found.every(({ status }) => status !== "queued"))
      const sql = yield* Writes
      const [shared] = yield* sql<{ id: string }>`
        select id from outbox where identity_id = ${ada.id} and domain = 'shared.example'`
      const bounce = ({ actor }: typeof ada, recipient: string | null) =>
        ask(
          actor.RecordBounce({
            message_id: fromPublic("msg_", sent.id)!,
            outbox_id: shared!.id,
            recipient,
            status: "5.1.1",
            diagnostic: "No such user",
            hard: true,
          }),
        )
      // Reports for the Mailbox of another Identity change nothing.
      yield* bounce(bob, "alone@own.example")
      yield* bounce(bob, null)
      expect((yield* ada.deliveries).map(({ status }) => status)).toEqual(["sent", "deferred", "sent", "sent"])
      yield* bounce(ada, "ALONE@own.example")
      yield* bounce(ada, null)
      yield* bounce(ada, people[0]!)
      expect((yield* ada.deliveries).map(({ status }) => status)).toEqual(["bounced", "deferred", "bounced", "bounced"])
      expect(yield* sql`select failed from outgoing where identity_id = ${ada.id}`).toEqual([{ failed: 3 }])
      const suppressed = yield* sql`
        select address from allowed_recipient where identity_id = ${ada.id} and suppressed_at is not null`
      expect(suppressed).toEqual([{ address: "alone@own.example" }])
    }),
  )

  it.effect("ends the queue of a message whose only recipient bounced before the next attempt", () =>
    Effect.gen(function* () {
      transport.answering.outside = deferAll
      const to = "late@alone.example"
      const ada = yield* correspondent("bouncelate", [to])
      const sent = yield* ada.send({ to: [to], text: "Hello." })
      yield* waitUntil(ada.rows, ([row]) => row?.attempts === 1 && !row.leased, 0)
      const message_id = fromPublic("msg_", sent.id)!
      const bounce = { message_id, outbox_id: null, status: "5.1.1", diagnostic: null, hard: true }
      yield* ask(ada.actor.RecordBounce({ ...bounce, recipient: to }))
      yield* TestClock.adjust(Timing.outboxWaitsMillis[0]!)
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      expect(transport.transmissions.filter(({ domain }) => domain === "alone.example").length).toBe(1)
      const sql = yield* Writes
      expect(yield* sql`select status, failed from outgoing where message_id = ${message_id}`).toEqual([
        { status: "done", failed: 1 },
      ])
    }),
  )
})
