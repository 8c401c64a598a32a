/** Messages of several Identities in one statement: each succeeds or fails independently. */
import * as OutboundBatch from "@svc/cluster/mail/sending/OutboundBatch"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { toPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { actors, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"
import { blocked, depart, makeSender, subjects } from "./Senders.ts"

layer(Layer.provideMerge(OutboundBatch.layer, actors()))("concurrent messages of several Identities", (it) => {
  it.effect("are stored with their own bytes, outbox rows and folders", () =>
    Effect.gen(function* () {
      const [ada, grace] = [yield* makeSender("ada"), yield* makeSender("grace")]
      for (const round of ["one", "two"]) {
        const ended = yield* depart(yield* ada.departure(round), yield* grace.departure(round))
        expect(ended).toEqual([Exit.succeed(true), Exit.succeed(true)])
      }
      for (const { handle, stored } of [ada, grace]) {
        expect(yield* stored).toEqual(
          ["one", "two"].map((subject, index) => ({
            subject,
            uid: index + 1,
            raw: `Subject: ${subject}\r\n\r\n${handle} says ${subject}\r\n`,
            status: "queued",
            people: "alan@two.example grace@one.example",
            due: 2,
          })),
        )
      }
    }),
  )

  it.effect("wait for approval, come from drafts or reach the limit independently", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [plain, waiting, last] = [
        yield* makeSender("plain"),
        yield* makeSender("waiting"),
        yield* makeSender("last"),
      ]
      const draft = yield* last.departure("last", { draftVersion: 1, near: { used: 80, quota: 100 } })
      yield* sql`
        insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
        values (${draft.mail.message_id}::uuid, ${last.id}::uuid, 1, '{}', '', now(), now())`
      const asking = yield* waiting.departure("waiting", { waits: true })
      const ended = yield* depart(yield* plain.departure("plain"), asking, draft)
      expect(ended).toEqual([Exit.succeed(true), Exit.succeed(true), Exit.succeed(true)])
      expect(yield* plain.stored).toMatchObject([{ subject: "plain", status: "queued", due: 2 }])
      expect(yield* waiting.stored).toMatchObject([{ subject: "waiting", status: "awaiting_approval", due: 0 }])
      expect(yield* last.stored).toMatchObject([{ subject: "last", status: "queued", due: 2 }])
      expect(yield* plain.told).toEqual([])
      expect(yield* waiting.told).toMatchObject([
        {
          type: "email.approval_requested",
          data: { message_id: toPublic("msg_", asking.mail.message_id), subject: "waiting", to: asking.mail.to },
          by: "identity_key",
          deliveries: 1,
        },
      ])
      expect(yield* last.told).toMatchObject([
        {
          type: "limit.near",
          data: { limit: "mail_hourly", identity: last.handle, used: 80, quota: 100, window: "hour" },
          by: "identity_key",
          deliveries: 0,
        },
      ])
      // Only the Identity whose Event queued a Webhook delivery has due work.
      expect([plain.due(), waiting.due(), last.due()]).toEqual([0, 1, 0])
      const boxes = yield* sql<{ near: boolean }>`
        select mail_near_at is not null as near from mailbox
        where identity_id = any(${[plain.id, waiting.id, last.id]}::uuid[])
        order by array_position(${[plain.id, waiting.id, last.id]}::uuid[], identity_id)`
      expect(boxes.map(({ near }) => near)).toEqual([false, false, true])
      expect(yield* sql`select id from draft`).toEqual([])
    }),
  )

  it.effect("have their own thread, flags, counters and queue entries", () =>
    Effect.gen(function* () {
      const [sql, ada, grace] = [yield* Writes, yield* makeSender("ada"), yield* makeSender("grace")]
      const hour = 3_600_000
      const uses = (id: string, ...ages: ReadonlyArray<number>) =>
        Effect.forEach(ages, (age) => sql`insert into mail_use values (${id}, ${new Date(Date.now() - age)})`)
      yield* uses(ada.id, 2 * hour, 2 * hour, hour / 2)
      const [first, foreign] = [yield* ada.departure("first"), yield* grace.departure("foreign")]
      yield* depart(first, foreign)
      const idle = yield* makeSender("idle")
      yield* uses(idle.id, 2 * hour)
      const own = yield* ada.departure("second", {
        answers: first.mail.message_id,
        submissionKey: new Uint8Array([7]),
        draftVersion: 2,
      })
      const other = yield* ada.departure("other", { answers: foreign.mail.message_id })
      const content = (id: string) =>
        rows((sql) => sql`select text, html, search_text, identity_id from message_content where message_id = ${id}`)
      // The body of the third message was stored ahead.
      const ahead = yield* grace.departure("ahead", { waits: true })
      yield* sql`
        insert into message_content (message_id, identity_id, raw, text, headers, search_text, created_at)
        values (${ahead.mail.message_id}, null, ${new Uint8Array([1])}, 'ahead', '[]', 'ahead', now())`
      // Both messages have a draft of their id, but only one was made from it.
      for (const { mail, write } of [own, ahead]) {
        yield* sql`
          insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
          values (${mail.message_id}, ${write.identity.id}, 2, '{}', '', now(), now())`
      }
      const [cc, bcc] = ["cc", "bcc"].map((name) => [{ address: `${name}@one.example`, name: null }])
      const { content: _, ...unsent } = { ...ahead.mail, cc: cc!, bcc: bcc! }
      const [before] = yield* sql<{ used: string; modseq: string }>`
        select bytes_used::text as used, modseq::text from mailbox where identity_id = ${ada.id}`
      yield* depart(own, { ...ahead, mail: { ...unsent, content: null } })
      yield* depart(other)
      const [after] = yield* sql<{ used: string; modseq: string }>`
        select bytes_used::text as used, modseq::text from mailbox where identity_id = ${ada.id}`
      expect(Number(after!.used) - Number(before!.used)).toBe(own.mail.size + other.mail.size)
      expect(Number(after!.modseq) - Number(before!.modseq)).toBe(2)
      const stored = (id: string) =>
        Effect.map(
          sql<{
            thread: string
            origin: string
            answered: boolean
            modseq: string
            seen: boolean
            left: number
            key: Uint8Array | null
            by: string
            lapses: Date | null
          }>`
            select m.thread_id as thread, m.summary -> 'origin' ->> 'domain' as origin, m.answered, m.modseq::text, m.seen,
                   o.rows_left as left, o.submission_key as key, o.asked_by as by, o.lapses_at as lapses
            from message m join outgoing o on o.message_id = m.id join placed p on p.message_id = m.id where m.id = ${id}`,
          ([row]) => row!,
        )
      const [one, two, three] = yield* Effect.forEach([first, own, other], ({ mail }) => stored(mail.message_id))
      expect(one).toMatchObject({
        origin: "mail.localhost",
        answered: true,
        seen: true,
        left: 2,
        key: null,
        by: "identity_key",
      })
      expect(two).toMatchObject({ thread: one!.thread, modseq: one!.modseq, answered: false, lapses: null })
      expect([...two!.key!]).toEqual([7])
      // A message of another Identity is neither continued nor marked as answered.
      const stranger = yield* stored(foreign.mail.message_id)
      expect(stranger.answered).toBe(false)
      expect(three!.thread).not.toBe(stranger.thread)
      const waiting = yield* stored(ahead.mail.message_id)
      expect(waiting.lapses).toEqual(new Date(ahead.write.at.getTime() + Timing.approvalMillis))
      const [asked] = yield* grace.told
      expect(asked!.data).toMatchObject({ expires_at: waiting.lapses!.toISOString(), cc, bcc })
      expect(yield* content(own.mail.message_id)).toEqual([
        { text: "second", html: null, search_text: "second to find", identity_id: ada.id },
      ])
      expect(yield* content(ahead.mail.message_id)).toMatchObject([
        { text: "ahead", html: null, identity_id: grace.id },
      ])
      // A message and a draft are only known to their own Identity.
      const { judge } = yield* OutboundBatch.OutboundBatch
      const judged = ({ write }: typeof own) => judge({ write, id: ahead.mail.message_id, recipients: [] })
      const its = { known: "awaiting_approval", known_id: ahead.mail.message_id_header, draft: 2 }
      expect(yield* judged(ahead)).toMatchObject(its)
      expect(yield* judged(own)).toMatchObject({ known: null, known_id: null, draft: null })
      expect(yield* sql`select id from draft`).toEqual([{ id: ahead.mail.message_id }])
      yield* sql`delete from draft`
      // Messages of the past hour count. A commit deletes older ones, but only those of the Identities that it writes to.
      const used = ({ id }: { readonly id: string }) =>
        Effect.map(sql`select at from mail_use where identity_id = ${id}`, (found) => found.length)
      expect(yield* Effect.forEach([ada, grace, idle], used)).toEqual([4, 2, 1])
    }),
  )

  it.effect("are not stored from a draft that has another version by now, or that changes meanwhile", () =>
    Effect.gen(function* () {
      const [sql, ada] = [yield* Writes, yield* makeSender("ada")]
      const [stale, current] = [
        yield* ada.departure("stale", { draftVersion: 1 }),
        yield* ada.departure("new", { draftVersion: 2 }),
      ]
      for (const { mail } of [stale, current]) {
        yield* sql`
          insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
          values (${mail.message_id}::uuid, ${ada.id}::uuid, 2, '{}', '', now(), now())`
      }
      expect(yield* depart(stale)).toEqual([Exit.succeed(false)])
      const sending = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`update draft set version = 3 where id = ${current.mail.message_id}`
          const sending = yield* Effect.forkDetach(depart(current))
          yield* waitUntil(blocked, ([row]) => row!.n > 0, 0)
          return sending
        }),
      )
      expect(yield* Fiber.join(sending)).toEqual([Exit.succeed(false)])
      expect(yield* subjects(ada)).toEqual([])
      yield* sql`delete from draft where identity_id = ${ada.id}`
    }),
  )

  it.effect("are only stored for actors that still own their Mailbox", () =>
    Effect.gen(function* () {
      const [owner, former] = [yield* makeSender("owner"), yield* makeSender("former")]
      const [lost, kept] = yield* depart(
        yield* former.departure("lost", { epochs: -1 }),
        yield* owner.departure("kept"),
      )
      expect(kept).toEqual(Exit.succeed(true))
      expect(lost).toMatchObject({ cause: { reasons: [{ error: { _tag: "FenceLost" } }] } })
      expect(yield* subjects(owner)).toEqual(["kept"])
      expect(yield* subjects(former)).toEqual([])
    }),
  )

  it.effect("do not wait for a locked Mailbox, whose message is stored once it is free", () =>
    Effect.gen(function* () {
      const [held, free] = [yield* makeSender("held"), yield* makeSender("free")]
      const sql = yield* Writes
      const both = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`update mailbox set modseq = modseq + 1 where identity_id = ${held.id}`
          const both = yield* Effect.forkDetach(depart(yield* held.departure("late"), yield* free.departure("at once")))
          yield* waitUntil(blocked, ([row]) => row!.n > 0, 0)
          // The same statement has already stored this message.
          expect(yield* subjects(free)).toEqual(["at once"])
          // A message is also stored while the other one waits.
          expect(yield* depart(yield* free.departure("again"))).toEqual([Exit.succeed(true)])
          expect(yield* blocked).toEqual([{ n: 1 }])
          return both
        }),
      )
      expect(yield* Fiber.join(both)).toEqual([Exit.succeed(true), Exit.succeed(true)])
      expect(yield* subjects(held)).toEqual(["late"])
    }),
  )

  it.effect("are stored even if the database rejects one of them", () =>
    Effect.gen(function* () {
      const [good, bad] = [yield* makeSender("good"), yield* makeSender("bad")]
      const [refused, stored] = yield* depart(yield* bad.departure("\u0000"), yield* good.departure("one"))
      expect(Exit.isFailure(refused!)).toBe(true)
      expect(stored).toEqual(Exit.succeed(true))
      expect(yield* subjects(good)).toEqual(["one"])
      expect(yield* subjects(bad)).toEqual([])
    }),
  )

  it.effect("report a Mailbox that was deleted meanwhile", () =>
    Effect.gen(function* () {
      const [here, departed] = [yield* makeSender("here"), yield* makeSender("gone")]
      const sql = yield* Writes
      yield* sql`delete from mailbox where identity_id = ${departed.id}`
      const ended = yield* depart(yield* departed.departure("lost"), yield* here.departure("one"))
      expect(ended).toEqual([Exit.succeed(false), Exit.succeed(true)])
      expect(yield* subjects(here)).toEqual(["one"])
    }),
  )
})
