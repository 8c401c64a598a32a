/** Folder commands of the actor: repeated commands and limits. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Writes } from "@svc/cluster/store/Database"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { type FolderFlagChange, limits } from "@svc/domain/mail/FolderProtocol"
import { limits as flagLimits } from "@svc/domain/mail/Flags"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors } from "../../harness/Actors.ts"
import { receivedMail } from "../../harness/Mail.ts"
import { rows } from "../../harness/Stores.ts"
import { makeMailbox } from "./ActorMailbox.ts"

layer(actors())("folder commands", (it) => {
  it.effect("copy and move messages once if the command is repeated", () =>
    Effect.gen(function* () {
      yield* makeMailbox("other")
      const { org_id, id, actor, folder, placed, receive } = yield* makeMailbox("ada")
      yield* (yield* Writes)`update folder set uid_validity = 77 where identity_id = ${id} and name = 'Trash'`
      for (let n = 0; n < 3; n++) yield* receive
      const inbox = yield* folder("INBOX")
      for (const move of [false, true]) {
        const options = onBehalfOf(system, yield* makeUuidV7)
        const command = { org_id, folder_id: inbox.id, uids: [[1, 2]] as const, to: "Trash", move }
        const first = yield* ask(actor.CopyMessages(command, options))
        const repeated = yield* ask(actor.CopyMessages(command, options))
        expect(first.to).toEqual(move ? [3, 4] : [1, 2])
        expect([first, repeated]).toMatchObject([{ uid_validity: 77 }, { uid_validity: 77, from: [1, 2], to: [] }])
      }
      expect((yield* placed("INBOX")).map(({ uid }) => uid)).toEqual([3])
      const trash = Effect.map(placed("Trash"), (found) => found.map(({ uid }) => uid))
      expect(yield* trash).toEqual([1, 2, 3, 4])
      const own = { org_id, folder_id: (yield* folder("Trash")).id }
      yield* ask(actor.ChangeFolderFlags({ ...own, uids: [[1, 3]], change: { deleted: true } }))
      yield* ask(actor.ExpungeFolder({ ...own, uids: [[2, 9]] }))
      expect(yield* trash).toEqual([1, 4])
    }),
  )

  it.effect("store an appended message once if the command is repeated", () =>
    Effect.gen(function* () {
      const { org_id, actor, placed } = yield* makeMailbox("grace")
      const mail = yield* receivedMail()
      const append = ask(
        actor.AppendMail({ org_id, folder: "Drafts", mail, change: { draft: true, labels: ["b", "a"] } }),
      )
      const first = yield* append
      expect(first.uid).toBe(1)
      expect(yield* append).toEqual(first)
      expect(yield* placed("Drafts")).toHaveLength(1)
      // In Sent, a mail program's copy of a message is recognized by its Message-ID.
      const sent = Effect.fnUntraced(function* (message_id_header: string | null) {
        const copy = yield* receivedMail({ message_id_header })
        return (yield* ask(actor.AppendMail({ org_id, folder: "Sent", mail: copy, change: {} }))).uid
      })
      const uids = yield* Effect.forEach(["<a@x.example>", "<b@x.example>", "<a@x.example>", null, null], sent)
      expect(uids).toEqual([1, 2, 1, 3, 4])
    }),
  )

  it.effect("reject a full Mailbox, a missing or existing folder and the deletion of a required folder", () =>
    Effect.gen(function* () {
      const { org_id, actor } = yield* makeMailbox("edsger")
      const mail = yield* receivedMail({ size: 2 * 1024 * 1024 })
      const reason = (refused: unknown) => expect(refused).toMatchObject({ _tag: "FolderRefused" })
      const full = yield* Effect.flip(ask(actor.AppendMail({ org_id, folder: "INBOX", mail, change: {} })))
      expect(full).toMatchObject({ reason: "full" })
      const name = (name: string) => ({ org_id, name, use: null })
      expect(yield* Effect.flip(ask(actor.CreateFolder(name("Sent"))))).toMatchObject({ reason: "exists" })
      expect(yield* Effect.flip(ask(actor.DeleteFolder({ org_id, name: "Sent" })))).toMatchObject({ reason: "inbox" })
      expect(yield* Effect.flip(ask(actor.DeleteFolder({ org_id, name: "no" })))).toMatchObject({ reason: "missing" })
      reason(yield* Effect.flip(ask(actor.CreateFolder({ org_id, name: "more", use: "trash" }))))
    }),
  )

  it.effect("create at most 1,000 folders in all, also as parents and by renaming", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, folder } = yield* makeMailbox("barbara")
      const sql = yield* Writes
      yield* sql`
        insert into folder (id, identity_id, name, uid_validity, created_at)
        select gen_random_uuid(), ${id}, 'f' || n, 1000 + n, now() from generate_series(1, ${limits.folders - 7}::int) n`
      const create = (name: string) => ask(actor.CreateFolder({ org_id, name, use: null }))
      const rename = (from: string, to: string) => ask(actor.RenameFolder({ org_id, from, to }))
      const tooMany = (command: Effect.Effect<unknown, unknown>) =>
        Effect.map(Effect.flip(command), (refused) => expect(refused).toMatchObject({ reason: "too_many" }))
      yield* tooMany(create("a/b/c"))
      yield* create("a/b")
      yield* tooMany(create("c"))
      yield* tooMany(create("a/c"))
      yield* tooMany(rename("INBOX", "old"))
      yield* tooMany(rename("f1", "c/f1"))
      yield* rename("f1", "a/f1")
      yield* rename("f2", "g")
      expect(yield* Effect.flip(rename("f2", "h"))).toMatchObject({ reason: "missing" })
      yield* ask(actor.DeleteFolder({ org_id, name: "f3" }))
      yield* rename("INBOX", "old")
      yield* tooMany(create("c"))
      expect([yield* folder("INBOX"), yield* folder("old")]).toMatchObject([{ uid_next: 1 }, { uid_next: 1 }])
    }),
  )

  it.effect("subscribe to at most 2,000 names until one is unsubscribed", () =>
    Effect.gen(function* () {
      const { org_id, id, actor } = yield* makeMailbox("radia")
      const sql = yield* Writes
      const subscribe = (name: string, subscribed: boolean) => ask(actor.SubscribeFolder({ org_id, name, subscribed }))
      const names = Effect.map(
        sql<{ name: string }>`select name from folder_subscription where identity_id = ${id} and name not like 's%'`,
        (found) => found.map(({ name }) => name).toSorted(),
      )
      const own = yield* names
      yield* sql`
        insert into folder_subscription (identity_id, name)
        select ${id}, 's' || n from generate_series(1, ${2 * limits.folders - own.length - 1}::int) n`
      yield* subscribe("last", true)
      expect(yield* Effect.flip(subscribe("more", true))).toMatchObject({ reason: "too_many" })
      yield* subscribe("Sent", false)
      yield* subscribe("more", true)
      expect(yield* names).toEqual([...own.filter((name) => name !== "Sent"), "last", "more"].toSorted())
    }),
  )

  it.effect("reject an unknown target and too many labels, and change nothing", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, folder, placed, receive } = yield* makeMailbox("shafi")
      yield* receive
      const inbox = yield* folder("INBOX")
      const own = { org_id, folder_id: inbox.id, uids: [[1, 1]] as const }
      const before = yield* placed("INBOX")
      const copy = (move: boolean) => ask(actor.CopyMessages({ ...own, to: "None", move }))
      const mail = yield* receivedMail()
      for (const command of [
        copy(true),
        copy(false),
        ask(actor.AppendMail({ org_id, folder: "None", mail, change: {} })),
      ]) {
        expect(yield* Effect.flip(command as Effect.Effect<unknown, unknown>)).toMatchObject({ reason: "missing" })
      }
      const change = (flags: FolderFlagChange) => ask(actor.ChangeFolderFlags({ ...own, change: flags }))
      yield* change({ labels: Array.from({ length: flagLimits.labels }, (_, n) => `l${n}`) })
      const more = change({ add_labels: ["more"], seen: true })
      expect(yield* Effect.flip(more)).toMatchObject({ reason: "too_many_labels" })
      expect(yield* placed("INBOX")).toEqual(before)
      const flags = rows((sql) => sql`select cardinality(labels) as n, seen from message where identity_id = ${id}`)
      expect(yield* flags).toEqual([{ n: flagLimits.labels, seen: false }])
    }),
  )

  it.effect("return the ranges of a whole copy that is repeated, without its new UIDs", () =>
    Effect.gen(function* () {
      const { org_id, actor, folder, placed, receive } = yield* makeMailbox("frances")
      for (let n = 0; n < 3; n++) yield* receive
      const inbox = yield* folder("INBOX")
      const options = onBehalfOf(system, yield* makeUuidV7)
      const uids = [[1, 2]] as const
      const copy = ask(
        actor.CopyMessages({ org_id, folder_id: inbox.id, uids, to: "Trash", move: false, whole: true }, options),
      )
      const first = yield* copy
      expect(first).toMatchObject({ from: [], to: [], whole: { from: [[1, 2]], first: 1 } })
      expect(yield* copy).toEqual({ ...first, whole: { from: [[1, 2]], first: null } })
      expect(yield* placed("Trash")).toHaveLength(2)
    }),
  )

  it.effect("accept an appended message that fills the Mailbox exactly", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, placed } = yield* makeMailbox("margaret")
      const quota = 1024 * 1024
      const append = (size: number) =>
        Effect.flatMap(receivedMail({ size }), (mail) =>
          Effect.result(ask(actor.AppendMail({ org_id, folder: "INBOX", mail, change: {} }))),
        )
      const sql = yield* Writes
      yield* sql`update mailbox set bytes_used = ${quota - 1_000} where identity_id = ${id}`
      expect(yield* append(1_001)).toMatchObject({ _tag: "Failure", failure: { reason: "full" } })
      expect(yield* append(1_000)).toMatchObject({ _tag: "Success" })
      expect(yield* append(1)).toMatchObject({ _tag: "Failure", failure: { reason: "full" } })
      expect(yield* placed("INBOX")).toHaveLength(1)
      expect(yield* sql`select bytes_used::int as used from mailbox where identity_id = ${id}`).toEqual([
        { used: quota },
      ])
    }),
  )

  it.effect("keep all flags of an appended message, in copies too", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, folder } = yield* makeMailbox("hedy")
      const flags = rows(
        (sql) => sql<{ name: string }>`
          select f.name, m.seen, m.flagged, m.answered, m.labels, p.deleted, p.draft
          from placed p join message m on m.id = p.message_id join folder f on f.id = p.folder_id
          where f.identity_id = ${id} order by f.name, m.uid`,
      )
      const none = { seen: false, flagged: false, answered: false, deleted: false, draft: false, labels: [] }
      const each = (["seen", "flagged", "answered", "deleted", "draft"] as const).map((flag) => ({
        ...none,
        [flag]: true,
      }))
      for (const change of [...each, { ...none, labels: ["work"] }]) {
        yield* ask(actor.AppendMail({ org_id, folder: "INBOX", mail: yield* receivedMail(), change }))
      }
      const expected = [...each, { ...none, labels: ["work"] }]
      const inFolder = (name: string) => expected.map((one) => ({ name, ...one }))
      expect(yield* flags).toEqual(inFolder("INBOX"))
      const inbox = yield* folder("INBOX")
      const copy = { org_id, folder_id: inbox.id, uids: [[1, 6]] as const, to: "Junk" }
      yield* ask(actor.CopyMessages({ ...copy, move: false }))
      expect(yield* flags).toEqual([...inFolder("INBOX"), ...inFolder("Junk")])
      yield* ask(actor.CopyMessages({ ...copy, to: "Trash", move: true }))
      expect(yield* flags).toEqual([...inFolder("Junk"), ...inFolder("Trash")])
    }),
  )

  it.effect("change nothing in the folder of another Identity", () =>
    Effect.gen(function* () {
      const mine = yield* makeMailbox("joan")
      const other = yield* makeMailbox("rosalind")
      yield* mine.receive
      const inbox = yield* mine.folder("INBOX")
      const state = rows(
        (sql) => sql`
          select p.folder_id, p.uid, p.identity_id, p.deleted, p.modseq, m.seen, m.modseq as message_modseq, b.bytes_used
          from placed p join message m on m.id = p.message_id join mailbox b on b.identity_id = p.identity_id`,
      )
      yield* ask(
        mine.actor.ChangeFolderFlags({
          org_id: mine.org_id,
          folder_id: inbox.id,
          uids: [[1, 1]],
          change: { deleted: true },
        }),
      )
      const before = yield* state
      const named = { org_id: other.org_id, folder_id: inbox.id, uids: [[1, 1]] as const }
      yield* ask(other.actor.ChangeFolderFlags({ ...named, change: { seen: true, deleted: false } }))
      for (const move of [false, true]) yield* ask(other.actor.CopyMessages({ ...named, to: "Trash", move }))
      for (const uids of [null, named.uids]) yield* ask(other.actor.ExpungeFolder({ ...named, uids }))
      expect(yield* state).toEqual(before)
      const subscriptions = rows((sql) => sql`select 1 from folder_subscription where identity_id = ${mine.id}`)
      yield* ask(other.actor.SubscribeFolder({ org_id: other.org_id, name: "Sent", subscribed: false }))
      expect(yield* subscriptions).toHaveLength(5)
    }),
  )

  it.effect("free the room of a message that its last folder loses, and not before", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, folder } = yield* makeMailbox("katherine")
      const used = Effect.map(
        rows((sql) => sql<{ used: number }>`select bytes_used::int as used from mailbox where identity_id = ${id}`),
        ([row]) => row!.used,
      )
      for (const size of [100, 20]) yield* ask(actor.ReceiveMail(yield* receivedMail({ size })))
      const inbox = yield* folder("INBOX")
      yield* ask(actor.CopyMessages({ org_id, folder_id: inbox.id, uids: [[1, 1]], to: "Trash", move: false }))
      const remove = Effect.fnUntraced(function* (name: string) {
        const folder_id = (yield* folder(name)).id
        const all = { org_id, folder_id, uids: [[1, 2]] as const }
        yield* ask(actor.ChangeFolderFlags({ ...all, change: { deleted: true } }))
        yield* ask(actor.ExpungeFolder({ org_id, folder_id, uids: null }))
      })
      yield* remove("INBOX")
      expect(yield* used).toBe(100)
      yield* remove("Trash")
      expect(yield* used).toBe(0)
    }),
  )

  it.effect("copy and remove a thousand messages at a time, and say whether more are left", () =>
    Effect.gen(function* () {
      const { org_id, actor, folder, placed, receive } = yield* makeMailbox("evelyn")
      yield* receive
      const { id: folder_id } = yield* folder("INBOX")
      const sql = yield* Writes
      yield* sql`
        insert into placed
        select (jsonb_populate_record(p, to_jsonb(p) || jsonb_build_object('uid', n, 'deleted', true))).*
        from placed p, generate_series(2, ${limits.messages + 2}::int) as n where p.folder_id = ${folder_id}`
      const copy = { org_id, folder_id, uids: [[1, limits.messages + 2]] as const, to: "Trash", move: false }
      expect((yield* ask(actor.CopyMessages(copy))).to).toHaveLength(limits.messages)
      yield* ask(actor.CopyMessages({ ...copy, whole: true }))
      expect(yield* placed("Trash")).toHaveLength(2 * limits.messages + 2)
      const expunge = ask(actor.ExpungeFolder({ org_id, folder_id, uids: null }))
      expect(yield* expunge).toEqual({ left: true })
      expect((yield* placed("INBOX")).map(({ uid }) => uid)).toEqual([1, limits.messages + 2])
      expect([yield* expunge, (yield* placed("INBOX")).map(({ uid }) => uid)]).toEqual([{ left: false }, [1]])
      expect(limits.messages).toBe(1_000)
    }),
  )

  it.effect("rename a folder with the folders below it, but not INBOX's, and never into itself", () =>
    Effect.gen(function* () {
      const { org_id, id, actor } = yield* makeMailbox("annie")
      const names = Effect.map(
        rows(
          (sql) =>
            sql<{ name: string }>`select name from folder where identity_id = ${id} and use is null order by name`,
        ),
        (found) => found.map(({ name }) => name),
      )
      for (const name of ["INBOX/sub", "a/b", "ab"]) yield* ask(actor.CreateFolder({ org_id, name, use: null }))
      const rename = (from: string, to: string) => ask(actor.RenameFolder({ org_id, from, to }))
      expect(yield* Effect.flip(rename("a", "a/c"))).toMatchObject({ reason: "exists" })
      expect(yield* Effect.flip(rename("a", "INBOX"))).toMatchObject({ reason: "exists" })
      yield* rename("a", "x/y")
      expect(yield* names).toEqual(["INBOX/sub", "ab", "x", "x/y", "x/y/b"])
      yield* rename("INBOX", "old")
      expect(yield* names).toEqual(["INBOX/sub", "ab", "old", "x", "x/y", "x/y/b"])
    }),
  )
})
