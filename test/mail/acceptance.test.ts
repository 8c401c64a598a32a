/** An actor that receives several messages concurrently: one commit, and a reply to each. */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Clock, Effect, Fiber, Layer, Result } from "effect"
import { actors, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

const mailboxBytes = 1024 * 1024

const ready = Effect.fnUntraced(function* (stem: string) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const id = yield* makeUuidV7
  const actor = (yield* Identities).of(handle)
  yield* ask(actor.Create({ org_id, identity_id: id, handle }))
  yield* waitUntil(
    Effect.flatMap(Reads, (sql) => sql<{ status: string }>`select status from identity where id = ${id}`),
    ([row]) => row?.status === "ready",
  )
  return { actor, org_id, id: id as IdentityId }
})

const mail = (given: Partial<ReceivedMail> & { readonly subject: string }) =>
  Effect.map(Effect.all([makeUuidV7, Clock.currentTimeMillis]), ([message_id, now]): ReceivedMail => ({
    message_id,
    envelope_from: "a@example.org",
    recipient: "x@mail.localhost",
    tag: null,
    sha256: new Uint8Array(32),
    key: new Uint8Array(createHash("sha256").update(message_id).digest()),
    size: 1_000,
    // Recent, because the mark of a transaction expires.
    received_at: new Date(now),
    origin: { verdict: "verified", spf: "pass", dkim: "pass", dmarc: "pass", domain: "example.org" },
    from: { address: "A@example.org", name: null },
    to: [],
    cc: [],
    bcc: [],
    reply_to: [],
    snippet: "",
    message_id_header: null,
    in_reply_to: null,
    references: [],
    attachments: [],
    content: { raw: Buffer.from(given.subject), text: given.subject, html: null, headers: [], search_text: "" },
    ...given,
  }))

interface Stored {
  readonly uid: number
  readonly id: string
  readonly thread_id: string
  readonly subject: string
  readonly commit: string
}
const stored = (id: string) =>
  Effect.flatMap(
    Reads,
    (sql) => sql<Stored>`
      select uid, id, thread_id, summary ->> 'subject' as subject, xmin::text as commit from message
      where identity_id = ${id} order by uid`,
  )

layer(MessageQueries.layer.pipe(Layer.provideMerge(actors({ limits: { mailboxBytes } }))))(
  "Concurrent messages for a Mailbox",
  (it) => {
    /** Sends all messages while the Mailbox is locked, so that they queue behind the first. */
    const together = Effect.fnUntraced(function* (
      { actor, id }: Effect.Success<ReturnType<typeof ready>>,
      mails: ReadonlyArray<ReceivedMail>,
    ) {
      const sql = yield* Writes
      const reads = yield* Reads
      const held = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select 1 from mailbox where identity_id = ${id} for update`
          const sent = yield* Effect.forkDetach(
            Effect.forEach(mails, (one) => Effect.result(ask(actor.ReceiveMail(one))), { concurrency: "unbounded" }),
          )
          yield* waitUntil(
            reads<{ n: number }>`select count(*)::int as n from pg_locks where not granted`,
            ([row]) => row!.n > 0,
            0,
          )
          return sent
        }),
      )
      return yield* Fiber.join(yield* held)
    })

    it.effect("share few commits, with UIDs and Events in the order of arrival", () =>
      Effect.gen(function* () {
        const box = yield* ready("many")
        const mails = yield* Effect.forEach(Array.from({ length: 40 }), (_, i) => mail({ subject: `n${i}` }))
        const outcomes = yield* together(box, mails)
        expect(outcomes.every((one) => Result.isSuccess(one) && one.success?.repeated === false)).toBe(true)
        const rows = yield* stored(box.id)
        expect(rows.map(({ uid, subject }) => `${uid} ${subject}`)).toEqual(mails.map((_, i) => `${i + 1} n${i}`))
        expect(new Set(rows.map(({ commit }) => commit)).size).toBeLessThan(10)
        const sql = yield* Reads
        const events = yield* sql<{ data: Record<string, unknown> }>`
          select data from event where identity_id = ${box.id} and type = 'email.received' order by seq`
        expect(events.map(({ data }) => data["message_id"])).toEqual(
          mails.map((one) => toPublic("msg_", one.message_id)),
        )
        expect(events[0]!.data).toEqual({
          email_id: toPublic("msg_", mails[0]!.message_id),
          message_id: toPublic("msg_", mails[0]!.message_id),
          from: { address: "A@example.org", name: null },
          to: [],
          subject: "n0",
          snippet: "",
          tag: null,
          tags: [],
          origin: mails[0]!.origin,
          size: 1_000,
          received_at: mails[0]!.received_at.toISOString(),
        })
        expect(
          yield* sql`select c.text, c.html from message_content c join message m on m.id = c.message_id
            where m.identity_id = ${box.id} and m.uid = 7`,
        ).toEqual([{ text: "n6", html: null }])
        expect(
          yield* sql`select address from allowed_recipient where identity_id = ${box.id} and reason = 'inbound'`,
        ).toEqual([{ address: "a@example.org" }])
        expect(yield* sql`select bytes_used::int as n, uid_next from mailbox where identity_id = ${box.id}`).toEqual([
          { n: 40_000, uid_next: 41 },
        ])
      }),
    )

    it.effect("add exactly their verified senders to the Allowed Recipients", () =>
      Effect.gen(function* () {
        const box = yield* ready("letters")
        const written = [
          "Ada@b\u00fccher.example",
          "ada@\uff45xample.org",
          // The Kelvin sign, whose lower case is k.
          "\u212aarl@example.org",
          "a b@example.org",
        ]
        const mails = yield* Effect.forEach(written, (address) => mail({ subject: "x", from: { address, name: null } }))
        expect((yield* together(box, mails)).every(Result.isSuccess)).toBe(true)
        const sql = yield* Reads
        const found = yield* sql<{ address: string }>`
          select address from allowed_recipient where identity_id = ${box.id} and reason = 'inbound' order by address`
        expect(found.map(({ address }) => address)).toEqual(["ada@example.org", "ada@xn--bcher-kva.example"])
      }),
    )

    it.effect("get individual replies: full, repeated, stored", () =>
      Effect.gen(function* () {
        const box = yield* ready("mixed")
        const first = yield* mail({ subject: "first" })
        const half = { size: 600_000 }
        const mails = [
          first,
          yield* mail({ subject: "half", ...half }),
          yield* mail({ subject: "too much", ...half }),
          // After one that did not fit, although it would fit itself.
          yield* mail({ subject: "small" }),
          yield* mail({ subject: "first again", key: first.key }),
          // The same message again, as the cluster sends it when in doubt.
          first,
        ]
        const outcomes = yield* together(box, mails)
        expect(
          outcomes.map((one) =>
            Result.isSuccess(one) ? one.success?.repeated : "reason" in one.failure && one.failure.reason,
          ),
        ).toEqual([false, false, "full", false, true, false])
        expect((yield* stored(box.id)).map(({ uid, subject }) => `${uid} ${subject}`)).toEqual([
          "1 first",
          "2 half",
          "3 small",
        ])
      }),
    )

    it.effect("join the thread of a message in the same batch", () =>
      Effect.gen(function* () {
        const box = yield* ready("threaded")
        const question = yield* mail({ subject: "question", message_id_header: "<q@example.org>" })
        const answer = yield* mail({
          subject: "answer",
          in_reply_to: "<q@example.org>",
          message_id_header: "<a@example.org>",
        })
        const thanks = yield* mail({ subject: "thanks", references: ["<q@example.org>", "<a@example.org>"] })
        yield* together(box, [yield* mail({ subject: "other" }), question, answer, thanks])
        const rows = yield* stored(box.id)
        expect(rows.map(({ thread_id }) => thread_id === question.message_id)).toEqual([false, true, true, true])
      }),
    )

    it.effect("are listed and paged in the order of their commits, whatever their ids", () =>
      Effect.gen(function* () {
        const box = yield* ready("ordered")
        const messages = yield* MessageQueries
        const unknown = toPublic("msg_", yield* makeUuidV7)
        // Created early, committed late.
        const late = yield* mail({ subject: "late" })
        const before = yield* Effect.forEach(["one", "two"], (subject) => mail({ subject }))
        const between = toPublic("msg_", yield* makeUuidV7)
        const early = [...before, yield* mail({ subject: "three" })]
        for (const one of early) yield* ask(box.actor.ReceiveMail(one))
        const seen = yield* messages.list(box.id, { limit: 1, offset: 0 })
        expect(seen.messages.map(({ subject }) => subject)).toEqual(["three"])
        const newest = seen.messages[0]!.id
        yield* ask(box.actor.ReceiveMail(late))
        const subjects = (filter: Parameters<typeof messages.list>[1]) =>
          Effect.map(messages.list(box.id, filter), (page) => page.messages.map(({ subject }) => subject))
        expect(yield* subjects({ limit: 10, offset: 0, after: newest })).toEqual(["late"])
        expect(yield* subjects({ limit: 10, offset: 0, after: between })).toEqual(["late", "three"])
        expect(yield* messages.newest(box.id)).toBe(toPublic("msg_", late.message_id))

        const walked: Array<string> = []
        let cursor: string | null | undefined
        while (cursor !== null) {
          const page: Effect.Success<ReturnType<typeof messages.list>> = yield* messages.list(box.id, {
            limit: 3,
            offset: 0,
            ...(cursor === undefined ? {} : { cursor }),
          })
          walked.push(...page.messages.map(({ subject }) => subject))
          cursor = page.next_cursor
        }
        expect(walked).toEqual(["late", "three", "two", "one"])
        expect((yield* Effect.flip(messages.list(box.id, { limit: 3, offset: 0, cursor: "forged" }))).code).toBe(
          "invalid_cursor",
        )

        // Continues after a message that was removed meanwhile.
        yield* ask(box.actor.RemoveMessage({ org_id: box.org_id, message_id: early[2]!.message_id }))
        expect(yield* subjects({ limit: 10, offset: 0, after: newest })).toEqual(["late"])
        // An unknown position before all messages is not that of the removed one.
        expect(yield* subjects({ limit: 10, offset: 0, after: unknown })).toEqual(["late", "two", "one"])
        const oldest = yield* messages.oldest(box.id, 2, 10)
        expect([oldest.messages.map(({ subject }) => subject), oldest.last]).toEqual([["late"], 4])
      }),
    )
  },
)
