/** A Mailbox of an Identity's actor, and what is stored in its folders. */
import { ask } from "@svc/cluster/actor/Ask"
import { Effect } from "effect"
import { makeIdentity, makeOrg } from "../../harness/Actors.ts"
import { newHandle } from "../../harness/Client.ts"
import { receivedMail } from "../../harness/Mail.ts"
import { rows } from "../../harness/Stores.ts"

export const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  const folder = (name: string) =>
    Effect.map(
      rows(
        (sql) => sql<{ id: string; uid_next: number }>`
          select id, uid_next from folder where identity_id = ${id} and name = ${name}`,
      ),
      ([row]) => row!,
    )
  const placed = (name: string) =>
    rows(
      (sql) => sql<{ uid: number; message_id: string; deleted: boolean }>`
        select p.uid, p.message_id, p.deleted from placed p join folder f on f.id = p.folder_id
        where f.identity_id = ${id} and f.name = ${name} order by p.uid`,
    )
  return {
    org_id,
    id,
    actor,
    folder,
    placed,
    receive: Effect.tap(receivedMail(), (mail) => ask(actor.ReceiveMail(mail))),
  }
})
