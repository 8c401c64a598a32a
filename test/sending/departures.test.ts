/** Messages of several Identities in one statement: each succeeds or fails independently. */
import { createSecretKey } from "node:crypto"
import type { OwnIdentity, Write } from "@svc/cluster/actor/Write"
import type { OutboundMessage } from "@svc/cluster/mail/sending/OutboundMessage"
import * as OutboundBatch from "@svc/cluster/mail/sending/OutboundBatch"
import { Reads, Writes } from "@svc/cluster/store/Database"
import type { Initiator } from "@svc/domain/account/Initiator"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const dataKey = Redacted.make(createSecretKey(new Uint8Array(32)))
const key: Initiator = { ...accountHolder, kind: "identity_key" }

/** Makes an Identity that sends like its actor, with a Webhook for approval requests. */
const makeSender = Effect.fnUntraced(function* (stem: string) {
  const sql = yield* Writes
  const orgId = yield* makeOrg
  const handle = newHandle(stem)
  const { id } = yield* makeIdentity(orgId, handle)
  yield* sql`
    insert into webhook (id, identity_id, url, event_types, status, created_at, version)
    values (${yield* makeUuidV7}::uuid, ${id}::uuid, 'https://receiver.example/', '{*}', 'active', now(), 1)`
  const [actor] = yield* sql<{ epoch: number }>`select epoch from actor where kind = 'Identity' and id = ${handle}`
  const identity: OwnIdentity = { id, handle, orgId, dataKey }
  let due = 0
  const write = (epochs: number): Write => ({
    sql,
    claim: { kind: "Identity", id: handle, epoch: actor!.epoch + epochs },
    fence: sql``,
    at: new Date(),
    by: key,
    due: () => due++,
    memory: new Map(),
    identity,
  })
  const departure = Effect.fnUntraced(function* (
    subject: string,
    change: Partial<OutboundMessage> & { readonly epochs?: number } = {},
  ) {
    const { epochs = 0, ...other } = change
    const message_id = yield* makeUuidV7
    const raw = Buffer.from(`Subject: ${subject}\r\n\r\n${handle} says ${subject}\r\n`)
    const person = (address: string) => ({ address, name: null })
    const departure: OutboundMessage = {
      write: write(epochs),
      mail: {
        message_id,
        message_id_header: `<${message_id}@mail.localhost>`,
        from: person(`${handle}@mail.localhost`),
        to: [person("grace@one.example"), person("alan@two.example")],
        cc: [],
        bcc: [],
        reply_to: [],
        subject,
        snippet: subject,
        in_reply_to: null,
        references: [],
        attachments: [],
        size: raw.length,
        sha256: new Uint8Array(32),
        content: { raw, text: subject, html: null, headers: [], search_text: subject },
      },
      recipient: "grace@one.example",
      rows: [
        { id: yield* makeUuidV7, domain: "one.example", addresses: ["grace@one.example"] },
        { id: yield* makeUuidV7, domain: "two.example", addresses: ["alan@two.example"] },
      ],
      answers: null,
      draftVersion: null,
      submissionKey: undefined,
      waits: false,
      near: null,
      ...other,
    }
    return departure
  })
  const stored = rows(
    (sql) => sql<{ subject: string; uid: number; raw: string; status: string; people: string; due: number }>`
      select m.summary ->> 'subject' as subject, p.uid, convert_from(c.raw, 'UTF8') as raw, g.status,
             (select string_agg(r.address, ' ' order by r.address) from outgoing_recipient r join outbox o on o.id = r.outbox_id
              where r.message_id = m.id and o.message_id = m.id) as people,
             (select count(*)::int from outbox o where o.message_id = m.id and o.next_attempt_at = g.created_at) as due
      from message m join placed p on p.message_id = m.id join folder f on f.id = p.folder_id and f.use = 'sent'
      join message_content c on c.message_id = m.id and c.identity_id = m.identity_id
      join outgoing g on g.message_id = m.id and g.identity_id = m.identity_id
      where m.identity_id = ${id} and m.direction = 'outbound' order by m.uid`,
  )
  const raisedEvents = rows(
    (sql) => sql<{ type: string; data: Record<string, unknown>; by: string; deliveries: number }>`
      select type, data, caused_by ->> 'kind' as by,
             (select count(*)::int from delivery d where d.event_id = e.id and d.identity_id = ${id}) as deliveries
      from event e where org_id = ${orgId}::uuid and (type like 'email.%' or type like 'limit.%') order by seq`,
  )
  return { id, handle, departure, stored, told: raisedEvents, due: () => due }
})

type Sender = Effect.Success<ReturnType<typeof makeSender>>

/** Sends messages in the same turn, and so in one statement. */
const depart = (...departures: ReadonlyArray<OutboundMessage>) =>
  Effect.flatMap(OutboundBatch.OutboundBatch, ({ store }) =>
    Effect.all(
      departures.map((departure) => Effect.exit(store(departure))),
      { concurrency: "unbounded" },
    ),
  )

const subjects = ({ stored }: Sender) => Effect.map(stored, (found) => found.map(({ subject }) => subject))

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
      const reads = yield* Reads
      const waits = reads<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`
      const both = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`update mailbox set modseq = modseq + 1 where identity_id = ${held.id}`
          const both = yield* Effect.forkDetach(depart(yield* held.departure("late"), yield* free.departure("at once")))
          yield* waitUntil(waits, ([row]) => row!.n > 0, 0)
          // The same statement has already stored this message.
          expect(yield* subjects(free)).toEqual(["at once"])
          // A message is also stored while the other one waits.
          expect(yield* depart(yield* free.departure("again"))).toEqual([Exit.succeed(true)])
          expect(yield* waits).toEqual([{ n: 1 }])
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
