/** Who may be written to besides Allowed Recipients (the account holder), and who may not any more (addresses that bounced). */
import { ask } from "@svc/cluster/actor/Ask"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
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

layer(actors({ transport }))("sending", (it) => {
  it.effect("allows the account holder's address only once it is verified, and no other account's", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const ada = yield* correspondent("judgeowner", [])
      const other = yield* correspondent("judgeother", [])
      const verify = (org: string) => sql`update org set email_verified_at = now() where id = ${org}`
      const toOwner = ada.send({ to: [`${ada.org_id}@example.org`], text: "Hello." })
      yield* verify(other.org_id)
      expect(yield* Effect.flip(toOwner)).toMatchObject({ code: "recipient_not_allowed" })
      yield* verify(ada.org_id)
      expect((yield* toOwner).status).toBe("queued")
      const toOther = ada.send({ to: [`${other.org_id}@example.org`], text: "Hello." })
      expect(yield* Effect.flip(toOther)).toMatchObject({ code: "recipient_not_allowed" })
    }),
  )

  it.effect("is listed once, also if a bounce suppressed it or it was added before it was verified", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const ada = yield* correspondent("listowner", ["friend@example.org"])
      const own = `${ada.org_id}@example.org`
      yield* sql`update org set email_verified_at = now() where id = ${ada.org_id}`
      yield* sql`
        insert into allowed_recipient (identity_id, address, reason, created_at, suppressed_at, suppression)
        values (${ada.id}, ${own}, 'manual', now(), now(), '5.1.1')`
      const settings = yield* MailSettingsQueries
      const { entries } = yield* settings.recipients(ada.id, { limit: 10, cursor: undefined })
      expect(entries.map(({ address, reason }) => [address, reason]).toSorted()).toEqual(
        [
          [own, "account_owner"],
          ["friend@example.org", "manual"],
        ].toSorted(),
      )
      expect(entries.find(({ address }) => address === own)).toEqual(yield* settings.recipient(ada.id, own))
      expect(JSON.stringify(entries.find(({ address }) => address === own))).toContain("5.1.1")
    }),
  )

  it.effect("is refused while it is suppressed, which is lifted for one address at a time", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const ada = yield* correspondent("liftowner", ["one@example.org", "two@example.org"])
      const own = `${ada.org_id}@example.org`
      yield* sql`update org set email_verified_at = now() where id = ${ada.org_id}`
      yield* sql`
        insert into allowed_recipient (identity_id, address, reason, created_at)
        values (${ada.id}, ${own}, 'account_owner', now())`
      yield* sql`update allowed_recipient set suppressed_at = now(), suppression = '5.1.1' where identity_id = ${ada.id}`
      const addresses = [own, "one@example.org", "two@example.org"]
      const refused = Effect.map(Effect.flip(ada.send({ to: addresses, text: "Hello." })), ({ errors = [] }) =>
        errors.map(({ path }) => path),
      )
      expect(yield* refused).toEqual(["/to/0", "/to/1", "/to/2"])
      const lift = (address: string) => ask(ada.actor.LiftSuppression({ org_id: ada.org_id, address }))
      yield* lift("one@example.org")
      expect(yield* refused).toEqual(["/to/0", "/to/2"])
      yield* lift(own)
      expect(yield* refused).toEqual(["/to/2"])
      expect(yield* Effect.flip(lift("one@example.org"))).toMatchObject({ code: "not_found" })
      yield* lift("two@example.org")
      expect((yield* ada.send({ to: addresses, text: "Hello." })).status).toBe("queued")
    }),
  )

  it.effect("adds no Allowed Recipient for a bounce or an unverified sender", () =>
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
      // The message is not his.
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
