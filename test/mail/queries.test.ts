/** The queries of a Mailbox: what they return, and that they return no message of another Mailbox. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Writes } from "@svc/cluster/store/Database"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { toPublic } from "@svc/domain/Ids"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  const receive = Effect.fnUntraced(function* (subject: string, part: Partial<ReceivedMail> = {}) {
    const mail = yield* receivedMail({ subject, ...part })
    yield* ask(actor.ReceiveMail(mail))
    return { uuid: mail.message_id, id: toPublic("msg_", mail.message_id) }
  })
  const flag = (messages: ReadonlyArray<{ readonly uuid: string }>, change: object) =>
    ask(actor.ChangeFlags({ org_id, message_ids: messages.map(({ uuid }) => uuid), change }))
  return { id: id as IdentityId, receive, flag }
})

const content = (text: string | null, html: string | null) => ({
  raw: new Uint8Array([1, 2]),
  text,
  html,
  headers: [{ name: "Subject", value: "hello" }],
  search_text: text ?? "",
})

layer(actors())("The messages of a Mailbox", (it) => {
  it.effect("are listed in pages with an offset, whose cursors belong to one Mailbox", () =>
    Effect.gen(function* () {
      const [ada, grace, queries] = [yield* makeMailbox("ada"), yield* makeMailbox("grace"), yield* MessageQueries]
      for (const n of [1, 2, 3, 4]) yield* ada.receive(`${n}`)
      yield* grace.receive("foreign")
      const page = { limit: 2, offset: 1 }
      const texts = yield* queries.listText(ada.id, page)
      const values = yield* queries.list(ada.id, page)
      expect(texts.messages.map((text) => JSON.parse(text).subject)).toEqual(["3", "2"])
      expect(values.messages.map(({ subject }) => subject)).toEqual(["3", "2"])
      for (const { next_cursor } of [texts, values]) {
        const cursor = next_cursor!
        const rest = yield* queries.list(ada.id, { limit: 2, offset: 0, cursor })
        expect([rest.messages.map(({ subject }) => subject), rest.next_cursor]).toEqual([["1"], null])
        const foreign = yield* Effect.flip(queries.list(grace.id, { limit: 2, offset: 0, cursor }))
        expect(foreign).toMatchObject({ code: "invalid_cursor" })
      }
      expect((yield* queries.list(ada.id, { limit: 3, offset: 1 })).next_cursor).toBeNull()
      // Nothing is newer than an unknown message.
      const unknown = { limit: 9, offset: 0, after: "msg_unknown" }
      expect((yield* queries.list(ada.id, unknown)).messages).toEqual([])
      expect((yield* queries.listText(ada.id, unknown)).messages).toEqual([])
      expect((yield* queries.list(ada.id, { ...unknown, query: "hello" })).messages).toEqual([])
    }),
  )

  it.effect("are read forward from a UID, and the same UID is returned if no message follows", () =>
    Effect.gen(function* () {
      const [ada, queries] = [yield* makeMailbox("ada"), yield* MessageQueries]
      for (const n of [1, 2, 3]) yield* ada.receive(`${n}`)
      const first = yield* queries.oldest(ada.id, 0, 2)
      expect([first.messages.map(({ subject }) => subject), first.last]).toEqual([["1", "2"], 2])
      const next = yield* queries.oldest(ada.id, 2, 2)
      expect([next.messages.map(({ subject }) => subject), next.last]).toEqual([["3"], 3])
      expect(yield* queries.oldest(ada.id, 3, 2)).toEqual({ messages: [], last: 3 })
    }),
  )

  it.effect("are selected for a change by id or conversation if it changes them, newest first", () =>
    Effect.gen(function* () {
      const [ada, grace, queries] = [yield* makeMailbox("ada"), yield* makeMailbox("grace"), yield* MessageQueries]
      const [plain, seen, flagged, labelled] = [
        yield* ada.receive("plain"),
        yield* ada.receive("seen"),
        yield* ada.receive("flagged"),
        yield* ada.receive("labelled"),
      ]
      const foreign = yield* grace.receive("foreign")
      yield* ada.flag([seen], { seen: true })
      yield* ada.flag([flagged], { flagged: true })
      yield* ada.flag([labelled], { add_labels: ["one"] })
      const all = [plain, seen, flagged, labelled]
      const ids = [...all, foreign].map(({ id }) => id)
      const changed = (change: object, atMost = 10) =>
        Effect.map(queries.idsOf(ada.id, { ids }, change, atMost), (found) =>
          found.map((uuid) => ["plain", "seen", "flagged", "labelled"][all.findIndex((one) => one.uuid === uuid)]),
        )
      expect(yield* changed({})).toEqual(["labelled", "flagged", "seen", "plain"])
      expect(yield* changed({}, 2)).toEqual(["labelled", "flagged"])
      expect(yield* changed({ seen: true })).toEqual(["labelled", "flagged", "plain"])
      expect(yield* changed({ seen: false })).toEqual(["seen"])
      expect(yield* changed({ flagged: true })).toEqual(["labelled", "seen", "plain"])
      expect(yield* changed({ add_labels: ["one"] })).toEqual(["flagged", "seen", "plain"])
      expect(yield* changed({ remove_labels: ["one", "two"] })).toEqual(["labelled"])
      const threads = [toPublic("thr_", seen.uuid), toPublic("thr_", foreign.uuid)]
      expect(yield* queries.idsOf(ada.id, { threads }, {}, 10)).toEqual([seen.uuid])
    }),
  )

  it.effect("are read with their bodies, links and reply, and not by another Identity", () =>
    Effect.gen(function* () {
      const [ada, grace, queries] = [yield* makeMailbox("ada"), yield* makeMailbox("grace"), yield* MessageQueries]
      const text = "Yes.\n\n> https://example.org/quoted\n"
      const plain = yield* ada.receive("plain", { content: content(text, null) })
      const both = yield* ada.receive("both", {
        content: content("See", '<a href="https://example.org/page">page</a>'),
      })
      // Together they are larger than one response, so that they are read in slices.
      const half = 2_100_000
      const large = yield* ada.receive("large", { content: content("ä".repeat(half / 2), "h".repeat(half)) })
      const read = (id: string) => Effect.map(queries.read(ada.id, id), ({ message }) => message)
      expect(yield* read(plain.id)).toMatchObject({
        text,
        html: null,
        text_reply: "Yes.",
        headers: [{ name: "Subject", value: "hello" }],
        links: [{ url: "https://example.org/quoted" }],
      })
      expect(yield* read(both.id)).toMatchObject({ links: [{ url: "https://example.org/page" }] })
      const whole = yield* read(large.id)
      expect([whole.text, whole.html]).toEqual(["ä".repeat(half / 2), "h".repeat(half)])
      expect(whole.headers).toEqual([{ name: "Subject", value: "hello" }])
      expect([...(yield* queries.raw(ada.id, plain.id))]).toEqual([1, 2])
      expect((yield* queries.summary(ada.id, plain.id)).subject).toBe("plain")
      expect([yield* queries.newest(ada.id), yield* queries.newest(grace.id)]).toEqual([large.id, undefined])
      for (const id of [plain.id, "msg_unknown"]) {
        for (const foreign of [queries.read(grace.id, id), queries.summary(grace.id, id), queries.raw(grace.id, id)]) {
          expect(yield* Effect.flip(foreign as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
        }
      }
    }),
  )

  it.effect("lie in folders, to which their Identity subscribes", () =>
    Effect.gen(function* () {
      const [ada, grace, queries] = [yield* makeMailbox("ada"), yield* makeMailbox("grace"), yield* MessageQueries]
      const sql = yield* Writes
      const message = yield* ada.receive("one")
      yield* sql`delete from folder_subscription where identity_id = ${ada.id} and name = 'Trash'`
      const folders = yield* queries.folders(ada.id)
      const names = folders.map(({ name }) => name)
      expect([names.length, names]).toEqual([5, names.toSorted()])
      expect(folders.filter(({ subscribed }) => !subscribed).map(({ name }) => name)).toEqual(["Trash"])
      expect((yield* queries.folders(grace.id)).every(({ subscribed }) => subscribed)).toBe(true)
      // A message that is copied within its folder has a second entry there.
      yield* sql`
        insert into placed (identity_id, folder_id, uid, message_id, modseq)
        select identity_id, folder_id, uid + 1, message_id, modseq from placed where message_id = ${message.uuid}`
      expect(yield* queries.places([message])).toEqual(new Map([[message.id, ["INBOX"]]]))
      yield* sql`
        insert into placed (identity_id, folder_id, uid, message_id, modseq)
        select identity_id, id, 1, ${message.uuid}, 1 from folder where identity_id = ${ada.id} and name = 'Junk'`
      expect(yield* queries.places([message])).toEqual(new Map([[message.id, ["INBOX", "Junk"]]]))
    }),
  )
})
