/** The recipients that a report to a bounce address can concern: those of its outbox row, each once. */
import { Identities } from "@svc/cluster/actor/Identities"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Unhurried } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Unavailable } from "@svc/domain/problems/Problem"
import * as BounceAddress from "@svc/mail-gateway/mail/sending/BounceAddress"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import { expect, layer } from "@effect/vitest"
import { Timing } from "@svc/mail-gateway/Timing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { foundation } from "../../harness/Stores.ts"

const recorded: Array<readonly [mailbox: string, bounce: object]> = []
let failing: Effect.Effect<never, Unavailable> | undefined
const identities = Layer.succeed(Identities, {
  of: (mailbox: string) => ({
    RecordBounce: (bounce: object) => failing ?? Effect.sync(() => void recorded.push([mailbox, bounce])),
  }),
} as unknown as Identities["Service"])

layer(Bounces.layer.pipe(Layer.provide(identities), Layer.provideMerge(foundation)))("A report of failures", (it) => {
  it.effect("is recorded with the Identity for recipients of the outbox row, and otherwise changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const { record } = yield* Bounces
      const [id, message_id, one, two] = yield* Effect.all(Array.from({ length: 4 }, () => makeUuidV7))
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local session_replication_role = replica`
          yield* sql`
            insert into identity (id, canonical, handle, org_id, status, saga, created_at)
            values (${id!}, 'researchbot', 'research-bot', uuidv7(), 'ready', '{}', now())`
          for (const [row, domain, addresses] of [
            [one!, "one.example", ["A@one.example", "b@one.example"]],
            [two!, "two.example", ["c@two.example"]],
          ] as const) {
            yield* sql`
              insert into outbox (id, message_id, identity_id, domain, created_at)
              values (${row}, ${message_id!}, ${id!}, ${domain}, now())`
            yield* sql`
              insert into outgoing_recipient (message_id, address, outbox_id, status, changed_at)
              select ${message_id!}, address, ${row}, 'sent', now() from unnest(${addresses}::text[]) address`
          }
        }),
      )
      const sealing = yield* Sealing
      const address = (row: string) => `${BounceAddress.localPart(sealing, row)}@mail.localhost`
      const failure = (...addresses: ReadonlyArray<string>) => ({
        addresses,
        status: "5.1.1",
        diagnostic: "No such user",
        hard: true,
      })
      const named = failure("a@one.example", "other@x.example")
      yield* record(address(one!), [failure("c@two.example"), named, named])
      yield* record(address(two!), [failure("forwarded@x.example")])
      // The message was deleted, or the address is not one of ours.
      yield* record(address(yield* makeUuidV7), [named])
      yield* record("bounce+x@mail.localhost", [named])
      const bounce = { message_id, status: "5.1.1", diagnostic: "No such user", hard: true }
      expect(recorded).toEqual([
        ["researchbot", { ...bounce, outbox_id: one, recipient: "A@one.example" }],
        ["researchbot", { ...bounce, outbox_id: two, recipient: "c@two.example" }],
      ])
      // The server that reports tries again.
      for (failing of [Effect.fail(new Unavailable({ detail: "down", retry_after_seconds: 1 })), Effect.die("broken")])
        expect(yield* Effect.flip(record(address(one!), [named]))).toMatchObject({ _tag: "BouncesUnavailable" })
    }),
  )

  it.effect("is accepted from mail servers only, and 20 times a day for each message and client", () =>
    Effect.gen(function* () {
      const { judge, accepted } = yield* Bounces
      const sealing = yield* Sealing
      const rows = yield* Effect.all([makeUuidV7, makeUuidV7])
      const [one, two] = rows.map((row) => `${BounceAddress.localPart(sealing, row)}@mail.localhost`)
      const client = "192.0.2.1"
      const senders = ["", "MAILER-DAEMON@x.example", "mailer-daemon", "ada@x.example", "mailer-daemons@x.example"]
      const servers = yield* Effect.forEach(senders, (sender) => judge(one!, sender, client))
      expect(servers).toEqual(["take", "take", "take", "not_a_server", "not_a_server"])
      expect(yield* judge("bounce+x@mail.localhost", "", client)).toBe("not_ours")
      // A message to the same address twice counts once.
      for (let count = 0; count < 19; count++) yield* accepted([one!, one!, "ada@mail.localhost"], client)
      expect(yield* judge(one!, "", client)).toBe("take")
      yield* accepted([one!], client)
      expect(yield* judge(one!, "", client)).toBe("too_many")
      expect([yield* judge(two!, "", client), yield* judge(one!, "", "192.0.2.2")]).toEqual(["take", "take"])
      yield* TestClock.adjust(Timing.bounceWindowMillis - 1)
      expect(yield* judge(one!, "", client)).toBe("too_many")
      yield* TestClock.adjust(1)
      expect(yield* judge(one!, "", client)).toBe("take")
      for (let count = 0; count < 20; count++) {
        expect(yield* judge(one!, "", client)).toBe("take")
        yield* accepted([one!], client)
      }
      expect(yield* judge(one!, "", client)).toBe("too_many")
    }),
  )
})
