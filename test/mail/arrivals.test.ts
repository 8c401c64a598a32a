/** Messages of several Mailboxes in one statement: a failure in one Mailbox does not affect the others. */
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import type { OwnIdentity, Write } from "@svc/cluster/actor/Write"
import * as InboundBatch from "@svc/cluster/mail/InboundBatch"
import { RecentTexts } from "@svc/cluster/mail/search/RecentTexts"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { createSecretKey } from "node:crypto"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

const dataKey = Redacted.make(createSecretKey(new Uint8Array(32)))

/** A Mailbox with a Webhook for mail, and a write as its actor would do it. */
const makeBox = Effect.fnUntraced(function* (stem: string, types = "{email.received}") {
  const sql = yield* Writes
  const orgId = yield* makeOrg
  const handle = newHandle(stem)
  const { id } = yield* makeIdentity(orgId, handle)
  yield* sql`
    insert into webhook (id, identity_id, url, event_types, status, created_at, version)
    values (${yield* makeUuidV7}::uuid, ${id}::uuid, 'https://receiver.example/', ${types}, 'active', now(), 1)`
  const [actor] = yield* sql<{ epoch: number }>`select epoch from actor where kind = 'Identity' and id = ${handle}`
  const due: Array<string> = []
  const identity: OwnIdentity = { id, handle, orgId, dataKey }
  const written = (epoch: number): Write => ({
    sql,
    claim: { kind: "Identity", id: handle, epoch },
    fence: sql``,
    at: new Date(),
    by: system,
    due: (source = "all") => void due.push(source),
    memory: new Map(),
    identity,
  })
  const group = (mails: ReadonlyArray<ReceivedMail>, epochs = 0): InboundBatch.Group => ({
    write: written(actor!.epoch + epochs),
    mails,
    quotaBytes: 1024 * 1024,
  })
  const inbox = Effect.map(
    rows(
      (sql) => sql<{ subject: string }>`
        select summary ->> 'subject' as subject from message m join placed p on p.message_id = m.id and p.uid = m.uid
        where m.identity_id = ${id} order by m.uid`,
    ),
    (found) => found.map(({ subject }) => subject),
  )
  const raisedEvents = rows(
    (sql) => sql<{ handle: string; org_id: string; message_id: string; deliveries: number }>`
      select handle, org_id, data ->> 'message_id' as message_id,
             (select count(*)::int from delivery d where d.event_id = e.id and d.identity_id = ${id}) as deliveries
      from event e where identity_id = ${id} and type = 'email.received' order by seq`,
  )
  return { id, orgId, handle, group, inbox, raisedEvents, due }
})

/** Batches that arrive in the same turn, hence in one statement. */
const arrive = (...groups: ReadonlyArray<InboundBatch.Group>) =>
  Effect.flatMap(InboundBatch.InboundBatch, ({ store }) =>
    Effect.all(
      groups.map((group) => Effect.exit(store(group))),
      { concurrency: "unbounded" },
    ),
  )

/** The usage that was recorded. */
const counted: Array<unknown> = []
const usage = Layer.mock(UsageCounters)({ add: (...count) => void counted.push(count) })

layer(Layer.fresh(InboundBatch.layer).pipe(Layer.provide(usage), Layer.provideMerge(actors())))(
  "Concurrent messages of several Mailboxes",
  (it) => {
    it.effect("that were refused raise an Event if the Identity is ready, and none if it is deleted", () =>
      Effect.gen(function* () {
        const sql = yield* Writes
        const org = yield* makeOrg
        const { id, actor } = yield* makeIdentity(org, newHandle("leaver"))
        const refused = Effect.andThen(
          ask(actor.RefuseMail({ reason: "full", from: "a@example.org" })),
          rows((sql) => sql`select 1 from event where identity_id = ${id} and type = 'email.refused'`),
        )
        expect(yield* refused).toHaveLength(1)
        yield* sql`update identity set status = 'deleting' where id = ${id}`
        // The idle actor is unloaded in the background, and the next one reads the status.
        const again = Effect.andThen(sql`delete from event where identity_id = ${id}`, refused)
        yield* waitUntil(again, (events) => events.length === 0, "1 hour")
      }),
    )

    it.effect("are each refused if they arrive together for an Identity that does not exist", () =>
      Effect.gen(function* () {
        const actor = (yield* Identities).of("nobodyhere")
        const mails = yield* Effect.forEach(["one", "two", "three"], (subject) => receivedMail({ subject }))
        const refusals = yield* Effect.forEach(mails, (mail) => Effect.flip(ask(actor.ReceiveMail(mail))), {
          concurrency: "unbounded",
        })
        expect(refusals).toEqual(mails.map(() => expect.objectContaining({ reason: "gone" })))
      }),
    )

    it.effect("are stored in their own Mailboxes in order, with their Events and deliveries", () =>
      Effect.gen(function* () {
        const ada = yield* makeBox("ada")
        const grace = yield* makeBox("grace")
        const mails = (...subjects: ReadonlyArray<string>) =>
          Effect.forEach(subjects, (subject) => receivedMail({ subject }))
        const ended = yield* arrive(ada.group(yield* mails("one", "two")), grace.group(yield* mails("three")))
        expect(ended.every(Exit.isSuccess)).toBe(true)
        yield* arrive(grace.group(yield* mails("four", "five")), ada.group(yield* mails("six")))
        expect(yield* ada.inbox).toEqual(["one", "two", "six"])
        expect(yield* grace.inbox).toEqual(["three", "four", "five"])
        for (const { handle, orgId, raisedEvents, due } of [ada, grace]) {
          const events = yield* raisedEvents
          expect(events.map(({ handle, org_id, deliveries }) => ({ handle, org_id, deliveries }))).toEqual(
            Array.from({ length: 3 }, () => ({ handle, org_id: orgId, deliveries: 1 })),
          )
          expect(due).toEqual(["deliveries", "deliveries"])
        }
      }),
    )

    it.effect("have their own tags, repeats, work and usage", () =>
      Effect.gen(function* () {
        const [ada, grace] = [yield* makeBox("ada"), yield* makeBox("grace", "{email.sent}")]
        const key = (name: string) => new TextEncoder().encode(`${name} ${ada.handle}`)
        const [known, repeated] = [
          yield* receivedMail({ key: key("known") }),
          yield* receivedMail({ key: key("repeated") }),
        ]
        const plain = { text: null, html: "<p>", raw: new Uint8Array([1]), headers: [], search_text: "plain" }
        const tagged = yield* receivedMail({ tag: "news", size: 7, content: { ...plain, structure: "[]" } })
        counted.length = 0
        const first = yield* arrive(ada.group([known, repeated, tagged]))
        const stored = [known, repeated, tagged].map(({ message_id }) => message_id)
        expect(first).toMatchObject([{ value: { stored, known: [], repeated: [], used: "2007" } }])
        expect(counted).toEqual([
          [{ identity: ada.id }, "mail_received", { count: 3 }],
          [{ identity: ada.id }, "mailbox", { count: 2_007 }],
        ])
        const [again, other] = [{ ...repeated, message_id: yield* makeUuidV7 }, yield* receivedMail()]
        const claiming = yield* receivedMail({ agent_claim: { did: "did:web:agent.example", domain: "agent.example" } })
        const both = yield* arrive(ada.group([known, again]), grace.group([other]))
        expect(both).toMatchObject([
          { value: { stored: [], known: [known.message_id], repeated: [again.message_id] } },
          { value: { stored: [other.message_id], known: [], repeated: [] } },
        ])
        // Only stored messages are counted, and only queued deliveries and claims of agents are work.
        expect(counted.length).toBe(4)
        expect([ada.due, grace.due]).toEqual([["deliveries"], []])
        // The Mailbox has space for one of the two messages: the first one is stored.
        const [large, larger] = [yield* receivedMail({ size: 600_000 }), yield* receivedMail({ size: 600_001 })]
        const tight = yield* arrive(grace.group([large, larger]), ada.group([yield* receivedMail()]))
        expect(tight).toMatchObject([{ value: { stored: [large.message_id], used: "601000" } }, {}])
        expect([ada.due.splice(0, 1), grace.due]).toEqual([["deliveries"], []])
        yield* arrive(grace.group([claiming]), ada.group([yield* receivedMail()]))
        expect([ada.due, grace.due]).toEqual([["deliveries", "deliveries"], ["all"]])
        const rowOf = ({ message_id }: ReceivedMail) =>
          Effect.map(
            rows(
              (sql) => sql`
              select m.tag, m.tags, c.structure, c.text, c.html, e.data -> 'size' as size, e.data -> 'tag' as raised, e.data -> 'tags' as all_raised
              from message m join message_content c on c.message_id = m.id
              join event e on e.identity_id = m.identity_id and e.data ->> 'message_id' = ${toPublic("msg_", message_id)}
              where m.id = ${message_id}`,
            ),
            ([row]) => row,
          )
        const news = { tag: "news", tags: ["news"], raised: "news", all_raised: ["news"] }
        expect(yield* rowOf(tagged)).toEqual({ ...news, structure: "[]", text: null, html: "<p>", size: 7 })
        const none = {
          tag: null,
          tags: [],
          raised: null,
          all_raised: [],
          structure: null,
          text: "hello",
          html: null,
          size: 1_000,
        }
        expect(yield* rowOf(known)).toEqual(none)
      }),
    )

    it.effect("are stored only if the actor still owns its Mailbox", () =>
      Effect.gen(function* () {
        const owner = yield* makeBox("owner")
        const former = yield* makeBox("former")
        const [toFormer, toOwner] = [yield* receivedMail({ subject: "lost" }), yield* receivedMail({ subject: "kept" })]
        const [lost, kept] = yield* arrive(former.group([toFormer], -1), owner.group([toOwner]))
        expect(Exit.isSuccess(kept!)).toBe(true)
        expect(lost).toMatchObject({ cause: { reasons: [{ error: { _tag: "FenceLost" } }] } })
        expect(yield* owner.inbox).toEqual(["kept"])
        expect(yield* former.inbox).toEqual([])
        expect(yield* former.raisedEvents).toEqual([])
        expect(former.due).toEqual([])
        const { take } = yield* RecentTexts
        expect([toFormer, toOwner].map((mail) => take(mail.message_id))).toEqual([
          undefined,
          toOwner.content!.search_text,
        ])
      }),
    )

    it.effect("do not wait for a Mailbox that is locked by someone else", () =>
      Effect.gen(function* () {
        const held = yield* makeBox("held")
        const free = yield* makeBox("free")
        const sql = yield* Writes
        const reads = yield* Reads
        const waiting = reads<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`
        const late = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`select 1 from mailbox m join identity i on i.id = m.identity_id where i.handle = ${held.handle} for update of m`
            const waits = yield* Effect.forkDetach(arrive(held.group([yield* receivedMail({ subject: "late" })])))
            yield* waitUntil(waiting, ([row]) => row!.n > 0, 0)
            const stored = yield* arrive(free.group([yield* receivedMail({ subject: "at once" })]))
            expect(stored.every(Exit.isSuccess)).toBe(true)
            // The other message still waits: it was not dropped to let this one through.
            expect(yield* waiting).toEqual([{ n: 1 }])
            return waits
          }),
        )
        yield* Fiber.join(late)
        expect(yield* free.inbox).toEqual(["at once"])
      }),
    )

    it.effect("are stored even if the store rejects one of them", () =>
      Effect.gen(function* () {
        const good = yield* makeBox("good")
        const bad = yield* makeBox("bad")
        const [refused, ...stored] = yield* arrive(
          // A character that PostgreSQL cannot store; the gateway lets none through.
          bad.group([yield* receivedMail({ subject: "\u0000" })]),
          good.group([yield* receivedMail({ subject: "one" })]),
          good.group([yield* receivedMail({ subject: "two" })]),
        )
        expect(Exit.isFailure(refused!)).toBe(true)
        expect(stored.every(Exit.isSuccess)).toBe(true)
        expect(yield* good.inbox).toEqual(["one", "two"])
        expect(yield* bad.inbox).toEqual([])
      }),
    )
  },
)
