/** Actor commands for Allowed Recipients, the AI disclosure and the status of outgoing mail. */
import type { MailPatch, MailStatus } from "@svc/domain/mail/MailSettings"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, type Write } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { raise } from "../events/Raise.ts"
import type { SendingGate } from "./sending/outbox/SendingGate.ts"

interface ForRecipient {
  readonly org_id: string
  readonly address: string
}

export const handlers = ({ onReady }: ActorHandlers, gate: SendingGate["Service"]) => ({
  AllowRecipient: onReady(allow),
  DisallowRecipient: onReady(once("DisallowRecipient", disallow)),
  LiftSuppression: onReady(once("LiftSuppression", lift)),
  SetDisclosure: onReady(once("SetDisclosure", setDisclosure)),
  SwitchMail: onReady(once("SwitchMail", turn(gate))),
})

/** Adds an Allowed Recipient that never expires, even if it was an expiring correspondent before. */
const allow = (write: Write, { address }: ForRecipient) =>
  Effect.asVoid(
    commit(
      write,
      write.sql`allowed as (
        insert into allowed_recipient (identity_id, address, reason, created_at)
        select ${write.identity.id}::uuid, ${address}::text, 'manual', ${write.at}::timestamptz from fence
        on conflict (identity_id, address) do update set reason = 'manual', expires_at = null
      ) ${auditWriteWith(write.sql, write.note, "fence")}`,
    ),
  )

const disallow = Effect.fnUntraced(function* (write: Write, { address }: ForRecipient) {
  const { sql, identity } = write
  const row = yield* commit<{ gone: boolean }>(
    write,
    sql`gone as (
      delete from allowed_recipient
      where identity_id = ${identity.id} and address = ${address} and exists (select from fence) returning 1
    ) ${auditWriteWith(sql, write.note, "gone")}`,
    { columns: sql`exists (select from gone) as gone`, gate: "gone" },
  )
  if (!row.gone) return yield* new NotFound({ detail: "The Allowed Recipient does not exist." })
})

/**
 * Lifts a suppression. The account holder's own address only has a row while it is suppressed, so that row is deleted.
 */
const lift = Effect.fnUntraced(function* (write: Write, { address }: ForRecipient) {
  const { sql, identity } = write
  const which = sql`identity_id = ${identity.id} and address = ${address} and suppressed_at is not null and exists (select from fence)`
  const row = yield* commit<{ lifted: boolean }>(
    write,
    sql`
    gone as (delete from allowed_recipient where ${which} and reason = 'account_owner' returning 1),
    lifted as (
      update allowed_recipient set suppressed_at = null, suppression = null
      where ${which} and reason <> 'account_owner' returning 1
    ),
    either as (select from gone union all select from lifted) ${auditWriteWith(sql, write.note, "either")}`,
    { columns: sql`exists (select from either) as lifted`, gate: "either" },
  )
  if (!row.lifted) return yield* new NotFound({ detail: "The address is not suppressed." })
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
  const { version } = before!
  if (!matches(change.if_version, version)) return yield* refuse("The AI disclosure", version)
  yield* commit(
    write,
    sql`changed as (
      update mailbox set disclosure = ${change.text}::text, disclosure_updated_at = ${at}, disclosure_version = disclosure_version + 1
      where identity_id = ${identity.id} and exists (select from fence)
    ) ${auditWriteWith(sql, write.note, "fence")}`,
  )
})

/**
 * Stops or starts outgoing mail, or sets whether a person approves it. Repeating the current state changes nothing. A
 * stop is only acknowledged when no process sends mail of the Identity any more.
 */
const turn = (gate: SendingGate["Service"]) =>
  Effect.fnUntraced(function* (
    write: Write,
    change: { readonly org_id: string; readonly patch: MailPatch; readonly if_version: IfVersion },
  ) {
    const { sql, identity, at, by } = write
    const [row] = yield* sql<{
      version: number
      stopped: boolean
      approval: MailStatus["approval"]
      tag_folders: boolean
    }>`
      select switch_version as version, stopped_at is not null as stopped, approval, tag_folders
      from mailbox where identity_id = ${identity.id}`
    // A ready Identity has a Mailbox.
    const before = row!
    if (!matches(change.if_version, before.version)) return yield* refuse("The mail status", before.version)
    const { outgoing, approval = before.approval, tag_folders = before.tag_folders } = change.patch
    const stop = outgoing === undefined ? before.stopped : outgoing === "stopped"
    const turned = before.stopped !== stop
    if (turned || tag_folders !== before.tag_folders || approval !== before.approval) {
      const reason = change.patch.reason ?? null
      yield* commit(
        write,
        sql`
        changed as (
          update mailbox set switch_version = switch_version + 1, approval = ${approval}::text,
              tag_folders = ${tag_folders}::boolean
            ${
              turned
                ? sql`, stopped_at = ${stop ? at : null}::timestamptz, stopped_by = ${stop ? by.kind : null}::text,
                      stop_reason = ${stop ? reason : null}::text`
                : sql``
            }
          where identity_id = ${identity.id} and exists (select from fence)
          returning identity_id
        ),
        turned as (select identity_id from changed where ${turned}::bool),
        ${raise(write, "turned", stop ? "mail.stopped" : "mail.started", { by: by.kind, reason })}
        ${auditWriteWith(sql, write.note, "changed")}`,
        { raises: true },
      )
      // Queued mail is due again.
      if (turned && !stop) write.due()
    }
    if (outgoing === "stopped") yield* gate.closed(write)
  })
