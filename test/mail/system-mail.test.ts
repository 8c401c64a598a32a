/** The service's own mail through an SMTP relay: letters to people, and forwarded mail for the operator. */
import * as SystemMailForwarding from "@svc/cluster/mail/SystemMailForwarding"
import { RelayUnavailable, SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import { Writes } from "@svc/cluster/store/Database"
import { throughRelay } from "./sending/Sinks.ts"
import * as Mailer from "@svc/mail-gateway/mail/sending/Mailer"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, waitUntil } from "../harness/Actors.ts"
import { freePort } from "../harness/Ports.ts"
import { startRelay } from "../harness/Relay.ts"
import { foundation, rows } from "../harness/Stores.ts"

const relayed = Effect.gen(function* () {
  const port = yield* Effect.promise(freePort)
  const relay = yield* Effect.acquireRelease(
    Effect.promise(() => startRelay(port)),
    ({ stop }) => Effect.promise(stop),
  )
  const transport = throughRelay(`smtp://mailer:secret@127.0.0.1:${port}`)
  return { relay, mailer: Mailer.layer({ from: "accounts@svc.example" }).pipe(Layer.provide(transport)) }
})

const receive = Effect.fnUntraced(function* (subject: string) {
  const sql = yield* Writes
  const raw = new TextEncoder().encode(`From: grace@example.org\r\nSubject: ${subject}\r\n\r\nx\r\n`)
  const id = yield* makeUuidV7
  yield* sql`
    insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
    values (${id}, 'grace@example.org', ${raw}, ${subject}, ${raw}, now())`
})

const waiting = Effect.map(
  rows((sql) => sql<{ n: number }>`select count(*)::int as n from system_mail where forwarded_at is null`),
  ([row]) => row!.n,
)

layer(actors())("Mail for postmaster@", (it) => {
  it.effect("is forwarded behind any number of messages that the relay rejects, which are tried again later", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const began = yield* Clock.currentTimeMillis
      for (let n = 0; n < 45; n++) {
        const raw = new TextEncoder().encode(`message ${n}`)
        yield* sql`
          insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
          values (${yield* makeUuidV7}, 'grace@example.org', ${raw}, 'x', ${raw}, ${new Date(began + n)})`
      }
      const tried: Array<number> = []
      let rejectsBelow = 42
      const mailer = Layer.succeed(SystemMailer, {
        send: () => Effect.void,
        keep: () => Effect.void,
        forward: ({ to, raw }) => {
          const n = Number(/^message (\d+)$/.exec(Buffer.from(raw).toString())![1])
          expect(to).toBe("operator@example.org")
          tried.push(n)
          return n < rejectsBelow ? Effect.fail(new RelayUnavailable({ message: "no" })) : Effect.void
        },
      })
      yield* Layer.build(SystemMailForwarding.layer({ to: "operator@example.org" }).pipe(Layer.provide(mailer)))
      yield* waitUntil(waiting, (count) => count === 42, 0)
      expect(tried).toEqual(Array.from({ length: 45 }, (_, n) => n))
      rejectsBelow = 0
      yield* waitUntil(waiting, (count) => count === 0, "1 second")
      expect(tried.slice(45)).toEqual(Array.from({ length: 42 }, (_, n) => n))
    }).pipe(Effect.scoped),
  )

  it.effect("that the relay rejects is tried ever later, at most once a day", () =>
    Effect.gen(function* () {
      yield* receive("spam")
      const sql = yield* Writes
      const began = yield* Clock.currentTimeMillis
      const tried: Array<number> = []
      const mailer = Layer.succeed(SystemMailer, {
        send: () => Effect.void,
        keep: () => Effect.void,
        forward: () =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            tried.push((now - began) / 1000)
            return Effect.fail(new RelayUnavailable({ message: "550 spam" }))
          }),
      })
      const round = Effect.provide(SystemMailForwarding.forward("operator@example.org"), mailer)
      yield* round
      for (let n = 0; n < 40; n++) yield* Effect.andThen(TestClock.adjust("15 seconds"), round)
      expect(tried).toEqual([0, 15, 45, 105, 225, 465])
      yield* sql`update system_mail set attempts = 1000, next_attempt_at = '-infinity' where subject = 'spam'`
      yield* round
      yield* Effect.andThen(TestClock.adjust("23 hours"), round)
      expect(tried).toHaveLength(7)
      yield* Effect.andThen(TestClock.adjust("1 hour"), round)
      expect(tried).toHaveLength(8)
      yield* sql`delete from system_mail where subject = 'spam'`
    }),
  )

  it.effect("is forwarded to the operator unchanged and once, and retried if the relay rejects it", () =>
    Effect.gen(function* () {
      const { relay, mailer } = yield* relayed
      yield* receive("a complaint")
      relay.refuses(true)
      yield* Layer.build(SystemMailForwarding.layer({ to: "operator@example.org" }).pipe(Layer.provide(mailer)))
      yield* waitUntil(
        Effect.sync(() => relay.refused()),
        (count) => count > 0,
        0,
      )
      expect(yield* waiting).toBe(1)
      relay.refuses(false)
      yield* waitUntil(waiting, (count) => count === 0)
      yield* receive("another")
      yield* waitUntil(waiting, (count) => count === 0)
      yield* TestClock.adjust("10 minutes")
      expect(relay.taken.map(({ to }) => to)).toEqual([["operator@example.org"], ["operator@example.org"]])
      expect(relay.taken[0]!.raw).toBe("From: grace@example.org\r\nSubject: a complaint\r\n\r\nx\r\n")
      expect(relay.taken[1]!.raw).toContain("Subject: another")
    }),
  )
  it.effect("is forwarded again if the relay's acceptance was not recorded", () =>
    Effect.gen(function* () {
      const { relay, mailer } = yield* relayed
      const sql = yield* Writes
      yield* receive("taken twice")
      // The state after a process died behind the relay's 250.
      yield* sql`alter table system_mail add constraint unnoted check (forwarded_at is null) not valid`
      yield* Layer.build(SystemMailForwarding.layer({ to: "operator@example.org" }).pipe(Layer.provide(mailer)))
      yield* waitUntil(
        Effect.sync(() => relay.taken.length),
        (count) => count > 1,
      )
      expect(yield* waiting).toBe(1)
      yield* sql`alter table system_mail drop constraint unnoted`
      yield* waitUntil(waiting, (count) => count === 0)
      const noted = relay.taken.length
      expect(new Set(relay.taken.map(({ raw }) => raw)).size).toBe(1)
      yield* TestClock.adjust("10 minutes")
      expect(relay.taken.length).toBe(noted)
    }),
  )
  it.effect("is forwarded even if it exceeds the driver's limit, and if the relay rejected the message before it", () =>
    Effect.gen(function* () {
      const { relay, mailer } = yield* relayed
      relay.refuses("large")
      const sql = yield* Writes
      yield* sql`
        insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
        select uuidv7(), '', '', name, convert_to(E'Subject: ' || name || E'\\r\\n\\r\\n' || repeat(E'0123456789abcde\\r\\n', lines), 'UTF8'),
               now() + n * interval '1 millisecond'
        from (values (1, 'large', 1200000), (2, 'small', 1)) as mail (n, name, lines)`
      yield* Layer.build(SystemMailForwarding.layer({ to: "operator@example.org" }).pipe(Layer.provide(mailer)))
      yield* waitUntil(waiting, (count) => count === 1)
      expect(relay.taken.map(({ raw }) => raw.slice(0, 14))).toEqual(["Subject: small"])
      relay.refuses(false)
      yield* waitUntil(waiting, (count) => count === 0)
      expect(relay.taken[1]!.raw.length).toBeGreaterThan(20_000_000)
    }),
  )
})

layer(foundation)("A letter", (it) => {
  it.effect("goes to exactly one address, from the service's own", () =>
    Effect.gen(function* () {
      const { relay, mailer } = yield* relayed
      const send = (to: string, through: typeof mailer) =>
        Effect.flatMap(SystemMailer, (system) => system.send({ to, subject: "Hello", text: "x" })).pipe(
          Effect.provide(through),
        )
      yield* send("ada@example.org", mailer)
      expect(relay.taken).toMatchObject([{ user: "mailer", from: "accounts@svc.example", to: ["ada@example.org"] }])
      expect(relay.taken[0]!.raw).toContain("Auto-Submitted: auto-generated")
      // A transport that would accept anything.
      const careless = Layer.mock(MailTransport, {
        carries: { by: "relay" },
        send: ({ recipients: [recipient] }) => Effect.succeed([{ recipient: recipient!, state: "sent", reply: null }]),
      })
      const through = Mailer.layer({ from: "accounts@svc.example" }).pipe(Layer.provide(careless))
      yield* send("ada@example.org", through)
      for (const to of [
        "a@b@c.example",
        "a@example.org,b@example.org",
        "<a@example.org>",
        "a@example.org\r\nBcc: b@x.org",
      ]) {
        expect((yield* Effect.flip(send(to, through)))._tag, to).toBe("RelayUnavailable")
      }
    }),
  )

  it.effect("has HTML and an address for replies only if given", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const transport = Layer.mock(MailTransport, {
        carries: { by: "relay" },
        send: ({ recipients: [recipient], content }) => {
          sent.push(Buffer.from(content).toString())
          return Effect.succeed([{ recipient: recipient!, state: "sent", reply: null }])
        },
      })
      const { send } = yield* Effect.provide(
        SystemMailer,
        Mailer.layer({ from: "accounts@svc.example" }).pipe(Layer.provide(transport)),
      )
      const letter = { to: "ada@example.org", subject: "Hello", text: "plain" }
      yield* send({ ...letter, html: "<b>bold</b>", replyTo: "grace@example.org" })
      yield* send(letter)
      expect(sent[0]).toContain("From: accounts@svc.example\r\n")
      expect(sent[0]).toContain("To: ada@example.org\r\n")
      expect(sent[0]).toContain("Reply-To: grace@example.org\r\n")
      expect(sent[0]).toMatch(/text\/plain[^]*plain[^]*text\/html[^]*<b>bold<\/b>/)
      expect(sent[1]).not.toMatch(/Reply-To|text\/html/)
    }),
  )

  it.effect("fails after 30 seconds, or if the server did not accept it", () =>
    Effect.gen(function* () {
      const through = (send: MailTransport["Service"]["send"]) =>
        Effect.flatMap(SystemMailer, (system) =>
          Effect.flip(system.send({ to: "ada@example.org", subject: "Hello", text: "x" })),
        ).pipe(
          Effect.provide(
            Mailer.layer({ from: "accounts@svc.example" }).pipe(
              Layer.provide(Layer.mock(MailTransport, { carries: { by: "relay" }, send })),
            ),
          ),
        )
      const begun = yield* Deferred.make<void>()
      const waiting = yield* Effect.forkChild(
        through(() => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)),
      )
      yield* Deferred.await(begun)
      yield* TestClock.adjust(29_999)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect((yield* Fiber.join(waiting)).message).toBe("timed out")
      const reply = { code: 451, status: "4.7.1", text: "later", host: "relay.example" }
      const deferred = yield* through(() =>
        Effect.succeed([{ recipient: "ada@example.org", state: "deferred", reply }]),
      )
      expect(deferred.message).toBe("deferred 451 later")
    }),
  )
})
