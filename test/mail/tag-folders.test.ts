/** Folders of subaddress tags: which messages are filed, in which batches, and how many folders there can be. */
import { ask } from "@svc/cluster/actor/Ask"
import { limits } from "@svc/cluster/mail/folders/TagFolders"
import { Unhurried } from "@svc/cluster/store/Database"
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
  return { receive, file, folders }
})

const tags = (from: number, count: number) => Array.from({ length: count }, (_, n) => `t${from + n}`)

layer(actors(), { timeout: "60 seconds" })("Tag folders", (it) => {
  it.effect("hold a message under each of its tags, once", () =>
    Effect.gen(function* () {
      const { receive, file, folders } = yield* makeMailbox("ada")
      yield* receive("a", "b")
      yield* receive("b")
      yield* receive()
      expect(yield* file).toEqual({ left: false })
      yield* receive("b", "a")
      expect(yield* file).toEqual({ left: false })
      expect(yield* file).toEqual({ left: false })
      expect(yield* folders).toEqual([
        { name: "Tags/a", uids: [1, 2], uid_next: 3 },
        { name: "Tags/b", uids: [1, 2, 3], uid_next: 4 },
      ])
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
})
