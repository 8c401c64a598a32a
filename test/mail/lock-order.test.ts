/**
 * Mail arrives and leaves concurrently with other writes of an Identity. Every write to a Mailbox locks the Mailbox's row before
 * any shared row; otherwise two statements could deadlock.
 */
import { ask } from "@svc/cluster/actor/Ask"
import { Unhurried } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, awaitFiber, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"

const mailbox = Effect.fnUntraced(function* (stem: string) {
  const sql = yield* Unhurried
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  const mail = yield* receivedMail({ tag: "invoices" })
  yield* ask(actor.ReceiveMail(mail))
  const [inbox] = yield* sql<{ id: string }>`select id from folder where identity_id = ${id} and use = 'inbox'`
  yield* sql`update mailbox set tag_folders = true where identity_id = ${id}`
  yield* sql`update placed set deleted = true where identity_id = ${id}`
  return { sql, org_id, actor, id, folder_id: inbox!.id, message_id: mail.message_id }
})

type Mailbox = Effect.Success<ReturnType<typeof mailbox>>

const copying = { uids: [[1, 1]] as const, to: "Trash" }

layer(actors())("A Mailbox's row is locked before those of its folders and messages", (it) => {
  it.effect.each<[string, (mailbox: Mailbox) => Effect.Effect<unknown, unknown, never>]>([
    [
      "a copy",
      ({ actor, org_id, folder_id }) => ask(actor.CopyMessages({ org_id, folder_id, ...copying, move: false })),
    ],
    [
      "a move",
      ({ actor, org_id, folder_id }) => ask(actor.CopyMessages({ org_id, folder_id, ...copying, move: true })),
    ],
    ["an expunge", ({ actor, org_id, folder_id }) => ask(actor.ExpungeFolder({ org_id, folder_id, uids: null }))],
    ["the filing of tags", ({ actor, org_id }) => ask(actor.FileTags({ org_id }))],
    ["INBOX renamed", ({ actor, org_id }) => ask(actor.RenameFolder({ org_id, from: "INBOX", to: "old" }))],
    ["a removal", ({ actor, org_id, message_id }) => ask(actor.RemoveMessage({ org_id, message_id }))],
    [
      "marks",
      ({ actor, org_id, message_id }) =>
        ask(actor.ChangeFlags({ org_id, message_ids: [message_id], change: { seen: true } })),
    ],
    [
      "marks in a folder",
      ({ actor, org_id, folder_id }) =>
        ask(actor.ChangeFolderFlags({ org_id, folder_id, uids: [[1, 1]], change: { seen: true } })),
    ],
  ])("by %s", ([what, change]) =>
    Effect.gen(function* () {
      const box = yield* mailbox(what.toLowerCase().replaceAll(" ", ""))
      const { sql, id } = box
      const waits = yield* sql.withTransaction(
        Effect.gen(function* () {
          const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`
            select pg_backend_pid() as pid from mailbox where identity_id = ${id} for update`
          const waits = yield* Effect.forkChild(change(box))
          yield* waitUntil(
            sql<{ waiting: boolean }>`
              select exists (select from pg_locks where not granted and ${pid}::int = any(pg_blocking_pids(pid))) as waiting`,
            ([row]) => row?.waiting === true,
            0,
          )
          yield* sql`select from folder where identity_id = ${id} for no key update nowait`
          yield* sql`select from message where identity_id = ${id} for no key update nowait`
          return waits
        }),
      )
      yield* awaitFiber(waits)
      expect(waits.pollUnsafe()).toMatchObject({ _tag: "Success" })
    }),
  )
})
