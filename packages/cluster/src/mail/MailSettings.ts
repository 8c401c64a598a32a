/** Allowed Recipients, the AI disclosure and the switch of outgoing mail: the writes an Identity's actor makes. */
import type { MailPatch } from "@svc/domain/mail/MailSettings"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { type Handling, once } from "../actor/Handling.ts"
import { commit, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"

interface ForRecipient {
  readonly org_id: string
  readonly address: string
}

export const handlers = ({ onReady }: Handling) => ({
  AllowRecipient: onReady(allow),
  DisallowRecipient: onReady(once("DisallowRecipient", disallow)),
  SetDisclosure: onReady(once("SetDisclosure", setDisclosure)),
  SwitchMail: onReady(once("SwitchMail", turn)),
})

/** An address added by hand never lapses, also where it was there as a correspondent. */
const allow = (write: Write, { address }: ForRecipient) =>
  Effect.asVoid(
    commit(
      write,
      write.sql`allowed as (
        insert into allowed_recipient (identity_id, address, reason, created_at)
        select ${write.identity.id}::uuid, ${address}::text, 'manual', ${write.at}::timestamptz from fence
        on conflict (identity_id, address) do update set reason = 'manual', expires_at = null
      )`,
    ),
  )

const disallow = Effect.fnUntraced(function* (write: Write, { address }: ForRecipient) {
  const { sql, identity } = write
  const row = yield* commit<{ gone: boolean }>(
    write,
    sql`gone as (
      delete from allowed_recipient
      where identity_id = ${identity.id} and address = ${address} and exists (select from fence) returning 1
    )`,
    { columns: sql`exists (select from gone) as gone` },
  )
  if (!row.gone) return yield* new NotFound({ detail: "There is no such Allowed Recipient." })
})

const refuse = (what: string, version: number) =>
  new PreconditionFailed({ detail: `${what} is at version ${version}.` })

const setDisclosure = Effect.fnUntraced(function* (
  write: Write,
  change: { readonly org_id: string; readonly text: string | null; readonly if_version: IfVersion },
) {
  const { sql, identity, at } = write
  const [before] = yield* sql<{ version: number }>`
    select disclosure_version as version from mailbox where identity_id = ${identity.id}`
  const version = before?.version ?? 0
  if (!matches(change.if_version, version)) return yield* refuse("The AI disclosure", version)
  yield* commit(
    write,
    sql`changed as (
      update mailbox set disclosure = ${change.text}::text, disclosure_updated_at = ${at}, disclosure_version = disclosure_version + 1
      where identity_id = ${identity.id} and exists (select from fence)
    )`,
  )
})

/** Stops or starts outgoing mail; in the state it is in already nothing changes. */
const turn = Effect.fnUntraced(function* (
  write: Write,
  change: { readonly org_id: string; readonly patch: MailPatch; readonly if_version: IfVersion },
) {
  const { sql, identity, at, by } = write
  const [before] = yield* sql<{ version: number; stopped: boolean }>`
    select switch_version as version, stopped_at is not null as stopped from mailbox where identity_id = ${identity.id}`
  const version = before?.version ?? 0
  if (!matches(change.if_version, version)) return yield* refuse("The mail status", version)
  const stop = change.patch.outgoing === "stopped"
  if (before?.stopped === stop) return
  const reason = change.patch.reason ?? null
  yield* commit(
    write,
    sql`
    turned as (
      update mailbox set switch_version = switch_version + 1, stopped_at = ${stop ? at : null}::timestamptz,
             stopped_by = ${stop ? by.kind : null}::text, stop_reason = ${stop ? reason : null}::text
      where identity_id = ${identity.id} and exists (select from fence)
      returning identity_id
    ),
    ${raise(write, "turned", stop ? "mail.stopped" : "mail.started", { by: by.kind, reason })}`,
    { raises: true },
  )
})
