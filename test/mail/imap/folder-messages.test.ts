/** Messages that the actor appends to folders and removes from them, and the folders that it creates. */
import { ask } from "@svc/cluster/actor/Ask"
import { Writes } from "@svc/cluster/store/Database"
import { type FolderUse, limits } from "@svc/domain/mail/FolderProtocol"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors } from "../../harness/Actors.ts"
import { receivedMail } from "../../harness/Mail.ts"
import { rows } from "../../harness/Stores.ts"
import { makeMailbox } from "./ActorMailbox.ts"

const mailboxBytes = 10_000

layer(actors({ limits: { mailboxBytes } }))("The actor of a Mailbox", (it) => {
  it.effect("subscribes a new Mailbox to its standard folders, and gives a use only to the folder that was named", () =>
    Effect.gen(function* () {
      const { org_id, id, actor } = yield* makeMailbox("ada")
      yield* ask(actor.CreateFolder({ org_id, name: "old/mail", use: "archive" }))
      const folders = yield* rows(
        (sql) => sql<{ name: string; use: FolderUse | null; subscribed: boolean }>`
          select f.name, f.use, s.name is not null as subscribed
          from folder f left join folder_subscription s using (identity_id, name)
          where f.identity_id = ${id} order by f.name collate "C"`,
      )
      expect(folders.map(({ name, use, subscribed }) => [name, use, subscribed])).toEqual([
        ["Drafts", "drafts", true],
        ["INBOX", "inbox", true],
        ["Junk", "junk", true],
        ["Sent", "sent", true],
        ["Trash", "trash", true],
        ["old", null, false],
        ["old/mail", "archive", false],
      ])
    }),
  )

  it.effect("gives each new folder a higher UID validity than all before it", () =>
    Effect.gen(function* () {
      const { org_id, id, actor } = yield* makeMailbox("grace")
      const validities = Effect.map(
        rows((sql) => sql<{ v: number }>`select uid_validity as v from folder where identity_id = ${id} order by v`),
        (found) => found.map(({ v }) => v),
      )
      const create = (name: string) => ask(actor.CreateFolder({ org_id, name, use: null }))
      const rename = (from: string, to: string) => ask(actor.RenameFolder({ org_id, from, to }))
      let before = yield* validities
      for (const [command, folders] of [
        [create("a/b/c"), 3],
        [create("d"), 1],
        [rename("d", "e/f/d"), 2],
        [rename("INBOX", "g/old"), 2],
        [create("h"), 1],
      ] as const) {
        yield* command
        const after = yield* validities
        const added = after.filter((one) => !before.includes(one))
        expect([...before, ...added]).toEqual(after)
        expect(new Set(added).size).toBe(folders)
        before = after
      }
    }),
  )

  it.effect("appends to Sent and Drafts as outbound, with the zone of the date", () =>
    Effect.gen(function* () {
      const { org_id, id, actor } = yield* makeMailbox("edsger")
      const append = Effect.fnUntraced(function* (folder: string, received_zone?: number) {
        const mail = yield* receivedMail({ received_zone })
        yield* ask(actor.AppendMail({ org_id, folder, mail, change: {} }))
      })
      for (const [folder, zone] of [["INBOX", -90], ["Sent", 60], ["Drafts"], ["Junk", 0]] as const)
        yield* append(folder, zone)
      const stored = yield* rows(
        (sql) => sql<{ direction: string; zone: number | null }>`
          select direction, received_zone as zone from message where identity_id = ${id} order by uid`,
      )
      expect(stored.map(({ direction, zone }) => [direction, zone])).toEqual([
        ["inbound", -90],
        ["outbound", 60],
        ["outbound", null],
        ["inbound", 0],
      ])
    }),
  )

  it.effect("takes a received message in Sent for no copy of a sent one", () =>
    Effect.gen(function* () {
      const { org_id, actor, folder } = yield* makeMailbox("barbara")
      const mail = Effect.suspend(() => receivedMail({ message_id_header: "<same@x.example>" }))
      yield* ask(actor.ReceiveMail(yield* mail))
      const { id: folder_id } = yield* folder("INBOX")
      yield* ask(actor.CopyMessages({ org_id, folder_id, uids: [[1, 1]], to: "Sent", move: false }))
      const append = Effect.flatMap(mail, (mail) => ask(actor.AppendMail({ org_id, folder: "Sent", mail, change: {} })))
      expect([(yield* append).uid, (yield* append).uid]).toEqual([2, 2])
    }),
  )

  it.effect("adds an appended message to the newest conversation of the same Mailbox that it refers to", () =>
    Effect.gen(function* () {
      const { org_id, id, actor } = yield* makeMailbox("frances")
      const other = yield* makeMailbox("radia")
      const receive = Effect.fnUntraced(function* (to: typeof actor, message_id_header: string, subject: string) {
        const mail = yield* receivedMail({ message_id_header, subject })
        yield* ask(to.ReceiveMail(mail))
        return mail.message_id
      })
      yield* receive(actor, "<one@x.example>", "one")
      const newest = yield* receive(actor, "<two@x.example>", "two")
      yield* receive(other.actor, "<three@x.example>", "three")
      const append = Effect.fnUntraced(function* (...references: ReadonlyArray<string>) {
        const mail = yield* receivedMail({ references, subject: references.join() })
        yield* ask(actor.AppendMail({ org_id, folder: "INBOX", mail, change: {} }))
        const [row] = yield* rows(
          (sql) => sql<{ thread_id: string }>`
            select thread_id from message where identity_id = ${id} and id = ${mail.message_id}`,
        )
        return [row!.thread_id, mail.message_id] as const
      })
      expect((yield* append("<two@x.example>", "<one@x.example>"))[0]).toBe(newest)
      const [thread, own] = yield* append("<three@x.example>")
      expect(thread).toBe(own)
    }),
  )

  it.effect("warns the account holder when an appended message makes the Mailbox nearly full", () =>
    Effect.gen(function* () {
      const { org_id, actor } = yield* makeMailbox("margaret")
      const mail = yield* receivedMail({ size: 0.8 * mailboxBytes })
      yield* ask(actor.AppendMail({ org_id, folder: "Trash", mail, change: {} }))
      const raised = yield* rows(
        (sql) => sql<{ data: unknown }>`select data from event where org_id = ${org_id} and type = 'limit.near'`,
      )
      expect(raised).toMatchObject([{ data: { limit: "mailbox_bytes", used: mail.size } }])
    }),
  )

  it.effect("keeps a message until its last place is gone, and then removes its content and remembers its place", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, folder, placed, receive } = yield* makeMailbox("hedy")
      yield* receive
      const { id: folder_id } = yield* folder("INBOX")
      const own = { org_id, folder_id }
      yield* ask(actor.CopyMessages({ ...own, uids: [[1, 1]], to: "INBOX", move: false }))
      const remove = (uid: number) =>
        Effect.andThen(
          ask(actor.ChangeFolderFlags({ ...own, uids: [[uid, uid]], change: { deleted: true } })),
          ask(actor.ExpungeFolder({ ...own, uids: null })),
        )
      const left = rows(
        (sql) => sql<{ messages: number; contents: number; removed: number }>`
          select (select count(*)::int from message where identity_id = ${id}) as messages,
                 (select count(*)::int from message_content where identity_id = ${id}) as contents,
                 (select count(*)::int from removed_message r join mailbox b using (identity_id, modseq)
                  where identity_id = ${id}) as removed`,
      )
      yield* remove(1)
      expect([yield* left, (yield* placed("INBOX")).map(({ uid }) => uid)]).toEqual([
        [{ messages: 1, contents: 1, removed: 0 }],
        [2],
      ])
      yield* remove(2)
      expect(yield* left).toEqual([{ messages: 0, contents: 0, removed: 1 }])
    }),
  )

  it.effect("removes every message of a deleted folder, however many there are", () =>
    Effect.gen(function* () {
      const { org_id, id, actor, folder, receive } = yield* makeMailbox("evelyn")
      yield* ask(actor.CreateFolder({ org_id, name: "bulk", use: null }))
      yield* receive
      const { id: inbox } = yield* folder("INBOX")
      yield* ask(actor.CopyMessages({ org_id, folder_id: inbox, uids: [[1, 1]], to: "bulk", move: true }))
      const { id: folder_id } = yield* folder("bulk")
      const sql = yield* Writes
      yield* sql`
        insert into placed select (jsonb_populate_record(p, to_jsonb(p) || jsonb_build_object('uid', n))).*
        from placed p, generate_series(2, ${limits.messages + 1}::int) as n where p.folder_id = ${folder_id}`
      yield* ask(actor.DeleteFolder({ org_id, name: "bulk" }))
      expect(yield* rows((sql) => sql`select id from message where identity_id = ${id}`)).toEqual([])
    }),
  )

  it.effect(
    "leaves flags that changed in the folder since the client saw them, and ignores UIDs that cannot exist",
    () =>
      Effect.gen(function* () {
        const { org_id, actor, folder, receive } = yield* makeMailbox("shafi")
        yield* receive
        const own = { org_id, folder_id: (yield* folder("INBOX")).id }
        const uids = [[1, 1]] as const
        const { modseq } = yield* ask(actor.ChangeFolderFlags({ ...own, uids, change: { seen: true } }))
        yield* ask(actor.ChangeFolderFlags({ ...own, uids, change: { deleted: true } }))
        const late = { ...own, uids, change: { flagged: true }, unchanged_since: modseq }
        expect((yield* ask(actor.ChangeFolderFlags(late))).modified).toEqual([1])
        const impossible = { ...own, uids: [[0x7fffffff, 0xffffffff]] as const, change: { flagged: true } }
        expect((yield* ask(actor.ChangeFolderFlags(impossible))).modified).toEqual([])
      }),
  )
})
