/** Folders of subaddress tags: which messages are filed, in which batches, and how many folders there can be. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { isWaiting, limits } from "@svc/cluster/mail/folders/TagFolders"
import { Unhurried } from "@svc/cluster/store/Database"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  yield* (yield* Unhurried)`update mailbox set tag_folders = true where identity_id = ${id}`
  const receive = Effect.fnUntraced(function* (...tags: ReadonlyArray<string>) {
    yield* ask(actor.ReceiveMail(yield* receivedMail({ tag: tags[0] ?? null, tags })))
  })
  const file = ask(actor.FileTags({ org_id }))
  const folders = rows(
    (sql) => sql<{ name: string; uids: ReadonlyArray<number>; uid_next: number }>`
      select f.name, array_agg(p.uid order by p.uid) as uids, f.uid_next from folder f join placed p on p.folder_id = f.id
      where f.identity_id = ${id} and f.name like 'Tags/%' group by f.id order by f.name`,
  )
  return { org_id, id, actor, receive, file, folders }
})

const tags = (from: number, count: number) => Array.from({ length: count }, (_, n) => `t${from + n}`)

layer(actors(), { timeout: "60 seconds" })("Tag folders", (it) => {
  it.effect("hold a message under each of its tags, once", () =>
    Effect.gen(function* () {
      const { id, receive, file, folders } = yield* makeMailbox("ada")
      yield* receive("a", "b")
      yield* receive("b")
      yield* receive()
      expect(yield* file).toEqual({ left: false })
      yield* receive("b", "a")
      const modseq = rows<{ box: string; last: string }>(
        (sql) => sql`
          select b.modseq as box, (select max(p.modseq) from placed p where p.identity_id = ${id}) as last
          from mailbox b where b.identity_id = ${id}`,
      )
      const [before] = yield* modseq
      expect(yield* file).toEqual({ left: false })
      // Mail programs fetch only what has a higher number than they know.
      const [after] = yield* modseq
      expect(Number(after!.box)).toBeGreaterThan(Number(before!.box))
      expect(after!.last).toBe(after!.box)
      expect(yield* file).toEqual({ left: false })
      expect(yield* folders).toEqual([
        { name: "Tags/a", uids: [1, 2], uid_next: 3 },
        { name: "Tags/b", uids: [1, 2, 3], uid_next: 4 },
      ])
    }),
  )

  it.effect("contain nothing while the setting is off, and no message that was removed from them", () =>
    Effect.gen(function* () {
      const { id, receive, file, folders } = yield* makeMailbox("lise")
      const sql = yield* Unhurried
      const set = (isOn: boolean) => sql`update mailbox set tag_folders = ${isOn} where identity_id = ${id}`
      yield* receive("a")
      yield* set(false)
      expect([yield* isWaiting(sql, id), yield* file, yield* folders]).toEqual([false, { left: false }, []])
      yield* set(true)
      expect([yield* isWaiting(sql, id), yield* file]).toEqual([true, { left: false }])
      yield* sql`
        delete from placed p using folder f where f.id = p.folder_id and f.identity_id = ${id} and f.name = 'Tags/a'`
      yield* receive("b")
      yield* file
      expect(yield* folders).toEqual([{ name: "Tags/b", uids: [1], uid_next: 2 }])
    }),
  )

  it.effect("are filled in batches that count a message once per tag, until none is left", () =>
    Effect.gen(function* () {
      const { receive, file, folders } = yield* makeMailbox("grace")
      const many = tags(0, 100)
      const inBatch = limits.places / many.length
      for (let n = 0; n <= inBatch; n++) yield* receive(...many)
      expect(yield* file).toEqual({ left: true })
      expect((yield* folders).map(({ uids }) => uids.length)).toEqual(many.map(() => inBatch))
      expect(yield* file).toEqual({ left: false })
      expect((yield* folders).map(({ uids }) => uids.length)).toEqual(many.map(() => inBatch + 1))
    }),
  )

  it.effect("exist for the first tags up to the limit, even if one message exceeds it", () =>
    Effect.gen(function* () {
      const { receive, file, folders } = yield* makeMailbox("alan")
      yield* receive(...tags(0, limits.folders - 1))
      yield* receive("first", "second", "not a folder name")
      yield* receive("t0")
      expect(yield* file).toEqual({ left: false })
      const names = (yield* folders).map(({ name }) => name)
      expect(names).toHaveLength(limits.folders)
      expect(names.filter((name) => !/^Tags\/t\d+$/.test(name))).toEqual(["Tags/first"])
      expect((yield* folders).find(({ name }) => name === "Tags/t0")?.uids).toEqual([1, 2])
    }),
  )

  it.effect("change nothing of another Identity with the same folders and messages", () =>
    Effect.gen(function* () {
      const [mine, other] = [yield* makeMailbox("vera"), yield* makeMailbox("jocelyn")]
      const sql = yield* Unhurried
      const stored = rows(
        (reads) => reads<{ name: string; subscribed: boolean }>`
          select f.name, f.uid_next, f.uid_validity, b.uid_validity as validity, b.modseq,
                 array(select p.uid from placed p where p.folder_id = f.id order by 1) as uids,
                 exists (select from folder_subscription s where s.identity_id = b.identity_id and s.name = f.name) as subscribed
          from folder f join mailbox b on b.identity_id = f.identity_id where b.identity_id = ${mine.id} order by 1`,
      )
      const work = Effect.fnUntraced(function* ({ org_id, id, actor }: typeof mine) {
        const thread = (message_id_header: string) => receivedMail({ message_id_header, tag: "t", tags: ["t"] })
        const mails = [yield* thread("<a@x.example>"), yield* thread("<b@x.example>")]
        for (const mail of mails) yield* ask(actor.ReceiveMail(mail))
        yield* ask(actor.FileTags({ org_id }))
        yield* ask(actor.CreateFolder({ org_id, name: "old", use: null }))
        yield* ask(actor.RenameFolder({ org_id, from: "old", to: "new" }))
        yield* ask(actor.SubscribeFolder({ org_id, name: "new", subscribed: true }))
        const [inbox] = yield* sql<{ id: string }>`select id from folder where identity_id = ${id} and use = 'inbox'`
        const command = { org_id, folder_id: inbox!.id, uids: [[1, 1]] as const, to: "new", move: false }
        const copy = actor.CopyMessages(command, onBehalfOf(system, yield* makeUuidV7))
        const { uid_validity } = yield* ask(copy)
        expect(yield* ask(copy)).toMatchObject({ uid_validity })
        const reply = yield* receivedMail({ references: ["<a@x.example>", "<b@x.example>"] })
        yield* ask(actor.AppendMail({ org_id, folder: "new", mail: reply, change: {} }))
        // The reply joins the thread of the newest message that it refers to.
        const threads = yield* sql`select thread_id as id from message where id = ${reply.message_id}`
        expect(threads).toEqual([{ id: mails[1]!.message_id }])
      })
      yield* work(mine)
      const before = yield* stored
      // Most mail programs show only folders with a subscription.
      expect(before.filter(({ subscribed }) => subscribed).map(({ name }) => name)).toEqual(
        expect.arrayContaining(["Tags", "Tags/t"]),
      )
      yield* work(other)
      yield* ask(other.actor.SubscribeFolder({ org_id: other.org_id, name: "new", subscribed: false }))
      expect(yield* stored).toEqual(before)
    }),
  )
})
