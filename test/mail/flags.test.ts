/** Flags of messages, and the change counter that IMAP and lists use. */
import { ask } from "@svc/cluster/actor/Ask"
import { Label, limits } from "@svc/domain/mail/Flags"
import type { FolderFlagChange } from "@svc/domain/mail/FolderProtocol"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { expect, it as plain, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  const receive = (part?: Partial<ReceivedMail>) =>
    Effect.tap(receivedMail(part), (mail) => ask(actor.ReceiveMail(mail)))
  const counter = Effect.map(
    rows((sql) => sql<{ modseq: number }>`select modseq::float8 as modseq from mailbox where identity_id = ${id}`),
    ([row]) => row!.modseq,
  )
  const removed = rows(
    (sql) => sql<{ id: string; modseq: number }>`
      select id, modseq::float8 as modseq from removed_message where identity_id = ${id} order by uid`,
  )
  return { org_id, id, actor, receive, counter, removed }
})

layer(actors())("Flags", (it) => {
  it.effect("of several messages change in one step, and unconditionally on request", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, counter } = yield* makeMailbox("ada")
      const [first, second] = [yield* receive(), yield* receive()]
      const before = yield* counter
      const message_ids = [first.message_id, second.message_id]
      const change = { seen: true, add_labels: ["$forwarded", "a/b"] }
      const marked = yield* ask(actor.ChangeFlags({ org_id, message_ids, change }))
      const state = { seen: true, flagged: false, answered: false, labels: ["$forwarded", "a/b"], modseq: before + 1 }
      expect(marked).toEqual({
        messages: [
          { message_id: first.message_id, uid: 1, ...state },
          { message_id: second.message_id, uid: 2, ...state },
        ],
        modified: [],
        overfull: [],
        modseq: before + 1,
      })
      expect(yield* ask(actor.ChangeFlags({ org_id, message_ids, change }))).toEqual(marked)
      expect(yield* counter).toBe(before + 1)
      const removal = { labels: undefined, remove_labels: ["a/b"], flagged: true, answered: true }
      const one = yield* ask(actor.ChangeFlags({ org_id, message_ids: [first.message_id], change: removal }))
      expect(one.messages).toMatchObject([
        { seen: true, flagged: true, answered: true, labels: ["$forwarded"], modseq: before + 2 },
      ])
      const set = yield* ask(
        actor.ChangeFlags({ org_id, message_ids, change: { labels: ["z", "b", "b"], seen: false } }),
      )
      expect(set.messages).toMatchObject([
        { seen: false, flagged: true, labels: ["b", "z"] },
        { seen: false, flagged: false, labels: ["b", "z"] },
      ])
    }),
  )

  it.effect("are unchanged if the message changed since, or would have too many labels", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, counter } = yield* makeMailbox("grace")
      const { message_id } = yield* receive()
      const since = yield* counter
      const labels = Array.from({ length: 64 }, (_, n) => `l${n}`)
      const change = (change: object, unchanged_since?: number) =>
        ask(actor.ChangeFlags({ org_id, message_ids: [message_id], change, unchanged_since }))
      expect((yield* change({ labels }, since)).modified).toEqual([])
      expect(yield* change({ seen: true }, since)).toMatchObject({ messages: [], modified: [message_id] })
      // A message that changed since is not also reported for its labels.
      const late = yield* change({ add_labels: ["one.more"] }, since)
      expect(late).toMatchObject({ messages: [], modified: [message_id], overfull: [] })
      const overfull = yield* change({ add_labels: ["one.more"], seen: true })
      expect(overfull).toMatchObject({ messages: [], overfull: [message_id], modseq: since + 1 })
      expect((yield* change({ add_labels: ["l1"], seen: true })).messages[0]!.labels).toHaveLength(64)
    }),
  )

  it.effect("of places in a folder change for the named messages only, and not if they changed since", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, receive } = yield* makeMailbox("lynn")
      for (let n = 0; n < 3; n++) yield* receive()
      const [inbox] = yield* rows(
        (sql) => sql<{ id: string }>`select id from folder where identity_id = ${id} and use = 'inbox'`,
      )
      const folder_id = inbox!.id
      yield* ask(actor.CopyMessages({ org_id, folder_id, uids: [[1, 3]], to: "Trash", move: false }))
      const uids = [1, 3].map((uid) => [uid, uid] as const)
      const change = (change: FolderFlagChange, unchanged_since?: number) =>
        ask(actor.ChangeFolderFlags({ org_id, folder_id, uids, change, unchanged_since }))
      yield* change({ seen: true, deleted: true })
      const places = rows(
        (sql) => sql<{ place: string }>`
          select concat_ws(' ', f.name, p.uid, p.deleted, m.seen) as place
          from placed p join message m on m.id = p.message_id join folder f on f.id = p.folder_id
          where f.identity_id = ${id} order by f.name, p.uid`,
      )
      const flagged = yield* places
      expect(flagged.map(({ place }) => place).join(", ")).toBe(
        "INBOX 1 t t, INBOX 2 f f, INBOX 3 t t, Trash 1 f t, Trash 2 f f, Trash 3 f t",
      )
      expect(yield* change({ seen: false, deleted: false }, 1)).toMatchObject({ modified: [1, 3] })
      expect(yield* places).toEqual(flagged)
      // A message that changed since is not also refused for its labels.
      yield* change({ labels: Array.from({ length: limits.labels }, (_, n) => `l${n}`) })
      expect(yield* change({ add_labels: ["more"] }, 1)).toMatchObject({ modified: [1, 3] })
    }),
  )

  it.effect("change only on messages of the own Org", () =>
    Effect.gen(function* () {
      const { receive } = yield* makeMailbox("edsger")
      const { message_id } = yield* receive()
      const other = yield* makeMailbox("barbara")
      const change = { message_ids: [message_id], change: { seen: true } }
      const answer = yield* ask(other.actor.ChangeFlags({ org_id: other.org_id, ...change }))
      expect(answer).toMatchObject({ messages: [], modified: [], overfull: [] })
      expect(yield* rows((sql) => sql`select seen from message where id = ${message_id}`)).toEqual([{ seen: false }])
    }),
  )
})

layer(actors())("The change counter", (it) => {
  it.effect("is incremented by arrivals, flags and removals, and by nothing else", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, counter, removed } = yield* makeMailbox("ada")
      const start = yield* counter
      const first = yield* receive()
      const second = yield* receive()
      expect(yield* counter).toBe(start + 2)
      const message_ids = [first.message_id, second.message_id]
      const gone = yield* ask(actor.RemoveMessages({ org_id, message_ids }))
      expect(gone.modseq).toBe(start + 3)
      expect(new Set(gone.removed)).toEqual(new Set(message_ids))
      expect(yield* removed).toEqual(message_ids.map((id) => ({ id, modseq: start + 3 })))
      expect(yield* ask(actor.RemoveMessages({ org_id, message_ids }))).toEqual({ removed: [], modseq: start + 3 })
      expect(yield* counter).toBe(start + 3)
      yield* ask(actor.AppendMail({ org_id, folder: "INBOX", mail: yield* receivedMail(), change: {} }))
      expect(yield* counter).toBe(start + 4)
    }),
  )
})

plain("a label is an atom of IMAP in lower case", () => {
  const is = Schema.is(Label)
  for (const label of ["a", "$mdnsent", "work/2026", "[x", "}", "a-b_c.d", "x".repeat(100)])
    expect(is(label), label).toBe(true)
  for (const label of [
    "",
    "A",
    "a b",
    "(a",
    "a)",
    "{1",
    "50%",
    "a*",
    'a"',
    "a\\",
    "a]",
    "ü",
    "a\u0001",
    "x".repeat(101),
  ]) {
    expect(is(label), label).toBe(false)
  }
})
