/** The messages that show API drafts to mail clients: what else reads or changes them, and how long they and their drafts exist. */
import { ask } from "@svc/cluster/actor/Ask"
import * as DraftRenditions from "@svc/cluster/mail/folders/DraftRenditions"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { ThreadQueries } from "@svc/cluster/mail/ThreadQueries"
import { Reads } from "@svc/cluster/store/Database"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

const eve = { address: "eve@example.org", name: null }

/** A Mailbox with a message and, in the same thread, the newer copy of a draft. */
const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  const received = yield* receivedMail({ message_id_header: "<1@drafts>", subject: "received", to: [], from: null })
  yield* ask(actor.ReceiveMail(received))
  const copy = yield* receivedMail({ references: ["<1@drafts>"], subject: "draft", from: eve })
  const draft = { id: yield* makeUuidV7, version: 1 }
  yield* ask(actor.AppendMail({ org_id, folder: "Drafts", mail: copy, change: { draft: true }, draft }))
  return { org_id, actor, id: id as IdentityId, received, copy }
})

/** A Mailbox with drafts, and commands that show them in the Drafts folder. */
const makeDrafts = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const made = yield* makeIdentity(org_id, newHandle(stem))
  const [actor, id] = [made.actor, made.id as IdentityId]
  const drafts = yield* Drafts
  return {
    org_id,
    actor,
    id,
    draft: Effect.fnUntraced(function* (subject: string) {
      const draft = yield* makeUuidV7
      yield* drafts.create(id, draft, { subject })
      const shown = toPublic("msg_", draft)
      return {
        id: draft,
        version: 1,
        replace: drafts.replace(id, shown, { subject }, null),
        remove: drafts.remove(id, shown, null),
      }
    }),
    show: ({ id, version }: DraftRenditions.Pictured) =>
      Effect.flatMap(receivedMail(), (mail) =>
        ask(actor.AppendMail({ org_id, folder: "Drafts", mail, change: { draft: true }, draft: { id, version } })),
      ),
    left: Effect.map(drafts.list(id, { limit: 10 }), ({ entries }) => entries.map(({ subject }) => subject)),
    folder: (name: string) =>
      Effect.map(
        rows((sql) => sql<{ id: string }>`select id from folder where identity_id = ${id} and name = ${name}`),
        ([row]) => row!.id,
      ),
  }
})

layer(actors())("The copy of a draft for mail clients", (it) => {
  it.effect("is in no list of messages, and cannot be read as a message", () =>
    Effect.gen(function* () {
      const { id, received, copy } = yield* makeMailbox("ada")
      const other = yield* makeMailbox("grace")
      const queries = yield* MessageQueries
      const page = { limit: 20, offset: 0 }
      const subjects = (messages: ReadonlyArray<string>) => messages.map((text): unknown => JSON.parse(text).subject)
      const listed = Effect.map(queries.listText(id, page), ({ messages }) => subjects(messages))
      const ofOther = Effect.map(queries.listText(other.id, page), ({ messages }) => subjects(messages))
      expect(yield* listed).toEqual(["received"])
      // Concurrent requests share a statement.
      expect(yield* Effect.all([listed, ofOther], { concurrency: "unbounded" })).toEqual([["received"], ["received"]])
      const values = yield* queries.list(id, page)
      expect(values.messages.map(({ subject }) => subject)).toEqual(["received"])
      const oldest = yield* queries.oldest(id, 0, 10)
      expect(oldest.messages.map(({ subject }) => subject)).toEqual(["received"])
      expect(yield* queries.newest(id)).toBe(toPublic("msg_", received.message_id))
      const shown = toPublic("msg_", copy.message_id)
      for (const read of [queries.read(id, shown), queries.summary(id, shown), queries.raw(id, shown)]) {
        expect(yield* Effect.flip(read as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      }
    }),
  )

  it.effect("does not count for a thread that it replies to, nor adds participants to it", () =>
    Effect.gen(function* () {
      const { org_id, actor, id, received } = yield* makeMailbox("edsger")
      const threads = yield* ThreadQueries
      const { entries } = yield* threads.list(id, { limit: 10 })
      expect(entries).toMatchObject([{ subject: "received", messages: 1, unread: 1, participants: [] }])
      const { messages } = yield* threads.read(id, entries[0]!.id, { limit: 10 })
      expect(messages.map(({ subject }) => subject)).toEqual(["received"])
      // Its other messages are archived, so the thread is, unlike another one.
      yield* ask(actor.ReceiveMail(yield* receivedMail()))
      const change = { add_labels: ["archived"] }
      yield* ask(actor.ChangeFlags({ org_id, message_ids: [received.message_id], change }))
      const archived = (archived: boolean) =>
        Effect.map(threads.list(id, { limit: 10, archived }), (found) => found.entries.length)
      expect([yield* archived(true), yield* archived(false)]).toEqual([1, 1])
    }),
  )

  it.effect("is not changed or removed with messages", () =>
    Effect.gen(function* () {
      const { org_id, actor, id, received, copy } = yield* makeMailbox("barbara")
      const queries = yield* MessageQueries
      const thread = toPublic("thr_", received.message_id)
      const selected = { ids: [toPublic("msg_", copy.message_id)], threads: [thread] }
      expect(yield* queries.idsOf(id, selected, {}, 10)).toEqual([received.message_id])
      expect(yield* queries.idsOf(id, { ids: selected.ids }, {}, 10)).toEqual([])
      const message_ids = [copy.message_id]
      const changed = yield* ask(actor.ChangeFlags({ org_id, message_ids, change: { flagged: true } }))
      expect(changed.messages).toEqual([])
      expect(yield* ask(actor.RemoveMessages({ org_id, message_ids }))).toMatchObject({ removed: [] })
    }),
  )

  it.effect(
    "takes its draft with it when a client removes it from Drafts, unless the draft was changed meanwhile",
    () =>
      Effect.gen(function* () {
        const { org_id, actor, show, draft, left, folder } = yield* makeDrafts("frances")
        const [shown, changed, other] = [yield* draft("shown"), yield* draft("changed"), yield* draft("other")]
        for (const one of [shown, changed, other]) yield* show(one)
        const remove = Effect.fnUntraced(function* (name: string) {
          const all = { org_id, folder_id: yield* folder(name), uids: [[1, 2]] as const }
          yield* ask(actor.ChangeFolderFlags({ ...all, change: { deleted: true } }))
          yield* ask(actor.ExpungeFolder({ org_id, folder_id: all.folder_id, uids: null }))
        })
        const copy = { org_id, folder_id: yield* folder("Drafts"), uids: [[1, 2]] as const, to: "Trash" }
        yield* ask(actor.CopyMessages({ ...copy, move: false }))
        yield* remove("Trash")
        expect(yield* left).toEqual(["shown", "changed", "other"])
        yield* changed.replace
        yield* remove("Drafts")
        expect(yield* left).toEqual(["changed", "other"])
      }),
  )

  it.effect("is missing for a new version of a draft, and hidden if its version is no longer current", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, show, draft } = yield* makeDrafts("evelyn")
      const other = yield* makeDrafts("radia")
      yield* other.draft("of another Identity")
      const [current, changed, removed] = [yield* draft("current"), yield* draft("changed"), yield* draft("removed")]
      for (const one of [current, changed, removed]) yield* show(one)
      const waiting = Effect.flatMap(Reads, (sql) => DraftRenditions.waiting(sql, id, 10))
      expect(yield* waiting).toEqual({ stale: false, drafts: [] })
      yield* changed.replace
      expect(yield* waiting).toMatchObject({ stale: true })
      yield* removed.remove
      expect(yield* waiting).toEqual({ stale: true, drafts: [{ id: changed.id, version: 2 }] })
      yield* draft("next")
      const some = Effect.flatMap(Reads, (sql) => DraftRenditions.waiting(sql, id, 1))
      expect((yield* some).drafts).toHaveLength(1)
      expect(yield* ask(actor.HideDrafts({ org_id }))).toEqual({ left: false })
      expect(yield* rows((sql) => sql`select uid from placed where identity_id = ${id}`)).toEqual([{ uid: 1 }])
      yield* show({ ...changed, version: 2 })
      expect(yield* waiting).toMatchObject({ stale: false, drafts: [{ version: 1 }] })
    }),
  )
})
