/** An Identity that sends mail on test layers: its Allowed Recipients, sent messages and their delivery state. */
import type { Initiator } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { MailPatch } from "@svc/domain/mail/MailSettings"
import type { NewMail } from "@svc/domain/mail/Sending"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import { Reads } from "@svc/cluster/store/Database"
import { Effect } from "effect"
import { makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

export const keyOf = (kind: "session" | "admin_key" | "identity_key"): Initiator => ({
  kind,
  credentialId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99",
  requestId: "req_1",
})

/** Creates an Identity in a new Org that may send to the addresses. Its Handle begins with the stem. */
export const correspondent = Effect.fnUntraced(function* (stem: string, allowed: ReadonlyArray<string>) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const { id, actor } = yield* makeIdentity(org_id, handle)
  for (const address of allowed) yield* ask(actor.AllowRecipient({ org_id, address }))
  const sending = yield* Sending
  const sql = yield* Reads

  const by = keyOf("identity_key")
  const subject = { id: id as IdentityId, handle, canonical: handle, status: "ready" as const, orgId: org_id, by }

  return {
    id: id as IdentityId,
    handle,
    org_id,
    actor,
    by,
    send: Effect.fnUntraced(function* (
      mail: NewMail,
      options: { readonly by?: Initiator; readonly id?: string; readonly draftVersion?: number } = {},
    ) {
      return yield* sending.accept({
        subject: { ...subject, by: options.by ?? by },
        id: options.id ?? (yield* makeUuidV7),
        mail,
        draftVersion: options.draftVersion ?? null,
      })
    }),
    /** Submits a message as a mail program does. */
    submit: (raw: string, recipients: ReadonlyArray<string>) =>
      sending.submit({ subject, raw: Buffer.from(raw), recipients }),
    switchMail: (patch: MailPatch, who: Initiator = keyOf("session")) =>
      ask(actor.SwitchMail({ org_id, patch, if_version: null }, onBehalfOf(who))),
    /** Returns its Events about outgoing mail, oldest first. */
    events: Effect.map(
      sql<{ type: string; data: Record<string, unknown> }>`
        select type, data from event where identity_id = ${id} and type <> 'identity.ready' order by seq`,
      (rows) => rows,
    ),
    deliveries: sql<{ address: string; status: string; text: string | null }>`
      select r.address, r.status, r.reply ->> 'text' as text from outgoing_recipient r join outgoing o using (message_id)
      where o.identity_id = ${id} order by o.created_at, r.address`,
    rows: sql<{ domain: string; attempts: number; next: Date | null; leased: boolean; held: string | null }>`
      select domain, attempts, next_attempt_at as next, attempt_started_at is not null as leased, held
      from outbox where identity_id = ${id} order by created_at, domain`,
  }
})
