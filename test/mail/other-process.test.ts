/**
 * A message that finds the mark of an equal one of another process: that process may have answered and be about to delete
 * the mark, so the message is checked again after a pause, and stored if the mark is gone by then.
 */
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { byMailbox } from "@svc/mail-gateway/mail/RecipientAddress"
import { type IncomingMail, Reception } from "@svc/mail-gateway/mail/Reception"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { awaitFiber, waitUntil } from "../harness/Actors.ts"
import { foundation, rows } from "../harness/Stores.ts"

const raw = new TextEncoder().encode("Subject: hello\r\n\r\nx\r\n")
const mail: IncomingMail = {
  raw: [raw],
  parsed: {
    cc: [],
    to: [],
    bcc: [],
    from: null,
    snippet: "x",
    subject: "hello",
    reply_to: [],
    references: [],
    attachments: [],
    in_reply_to: null,
    message_id: null,
    text: "x",
    html: null,
    headers: [],
    search_text: "hello",
  },
  origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: null },
  envelopeFrom: "grace@example.org",
  sha256: new Uint8Array(32),
}

const receipts: Array<boolean> = []
let received = 0
const actor = {
  ReceiveMail: () => Effect.sync(() => ({ repeated: receipts[received++] ?? false })),
}
const layers = Layer.mergeAll(
  SystemMail.layer,
  Reception.layer({ mailboxBytes: 1_000_000 }).pipe(
    // Only this message is used.
    Layer.provide(Layer.succeed(Identities, { of: () => actor } as unknown as Identities["Service"])),
  ),
).pipe(Layer.provideMerge(foundation))

layer(layers)("A message like one of another process", (it) => {
  it.effect(
    "for the operator is stored if the other message was acknowledged meanwhile, and not if it is a retry",
    () =>
      Effect.gen(function* () {
        const { store } = yield* SystemMail
        const sql = yield* Writes
        const stored = Effect.map(
          rows((sql) => sql<{ n: number }>`select count(*)::int as n from system_mail`),
          ([row]) => row!.n,
        )
        // Counts the attempts to set the mark.
        yield* sql`create sequence tried`
        yield* sql`
        create function try() returns trigger language plpgsql as $$
        begin perform nextval('tried'); return new; end $$`
        yield* sql`create trigger tried before insert on unanswered_mail for each row execute function try()`
        const tried = Effect.flatMap(Reads, (sql) => sql<{ n: number }>`select last_value::int as n from tried`)
        yield* store(mail)
        const retried = yield* Effect.forkChild(store(mail))
        yield* awaitFiber(retried, "1 second")
        expect(yield* stored).toBe(1)
        const [{ n } = { n: 0 }] = yield* tried
        const other = yield* Effect.forkChild(store(mail))
        yield* waitUntil(tried, ([row]) => row!.n > n, 0)
        yield* sql`delete from unanswered_mail`
        yield* awaitFiber(other, "1 second")
        expect(yield* stored).toBe(2)
      }),
  )

  it.effect("for a Mailbox is passed to its actor again after a pause", () =>
    Effect.gen(function* () {
      const { deliver } = yield* Reception
      const [recipient] = byMailbox(["ada@mail.localhost"])
      receipts.push(false, true, false)
      expect(yield* deliver(mail, recipient!)).toBe(true)
      expect(received).toBe(1)
      const other = yield* Effect.forkChild(deliver(mail, recipient!))
      yield* waitUntil(
        Effect.sync(() => received),
        (count) => count === 2,
        0,
      )
      yield* TestClock.adjust("1 second")
      expect(received).toBe(2)
      yield* awaitFiber(other, "1 second")
      expect(received).toBe(3)
    }),
  )
})
