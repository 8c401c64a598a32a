/** Allowed Recipients, the AI disclosure and the switch of outgoing mail: the writes an Identity's actor makes. */
import type { CredentialKind } from "@svc/domain/account/Account"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { MailPatch } from "@svc/domain/mail/MailSettings"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { raiseForIdentity } from "../events/Raise.ts"
import { committed, type Owned, type Written } from "../identity/Ownership.ts"
import type { Sql } from "../store/Database.ts"

/** An address added by hand never lapses, also where it was there as a correspondent. */
export const allow = (sql: Sql, identity: Owned, fence: Statement.Fragment, address: string, at: Date) =>
  sql<{ owned: boolean }>`
    with ${fence}, allowed as (
      insert into allowed_recipient (identity_id, address, reason, created_at)
      select ${identity.id}::uuid, ${address}::text, 'manual', ${at}::timestamptz from fence
      on conflict (identity_id, address) do update set reason = 'manual', expires_at = null
    )
    select exists (select from fence) as owned`.pipe(Effect.map(([row]) => committed(row, undefined)))

export const disallow = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  address: string,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | NotFound> {
  const [row] = yield* sql<{ owned: boolean; gone: boolean }>`
    with ${fence}, gone as (
      delete from allowed_recipient
      where identity_id = ${identity.id} and address = ${address} and exists (select from fence) returning 1
    )
    select exists (select from fence) as owned, exists (select from gone) as gone`
  if (row?.owned === true && !row.gone) return yield* new NotFound({ detail: "There is no such Allowed Recipient." })
  return committed(row, undefined)
})

const refuse = (what: string, version: number) =>
  new PreconditionFailed({ detail: `${what} is at version ${version}.` })

export const setDisclosure = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  change: { readonly text: string | null; readonly if_version: IfVersion },
  at: Date,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | PreconditionFailed> {
  const [before] = yield* sql<{ version: number }>`
    select disclosure_version as version from mailbox where identity_id = ${identity.id}`
  const version = before?.version ?? 0
  if (!matches(change.if_version, version)) return yield* refuse("The AI disclosure", version)
  const [row] = yield* sql<{ owned: boolean }>`
    with ${fence}, changed as (
      update mailbox set disclosure = ${change.text}::text, disclosure_updated_at = ${at}, disclosure_version = disclosure_version + 1
      where identity_id = ${identity.id} and exists (select from fence)
    )
    select exists (select from fence) as owned`
  return committed(row, undefined)
})

/** Stops or starts outgoing mail; in the state it is in already nothing changes. The value is how many deliveries were queued. */
export const turn = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  change: { readonly patch: MailPatch; readonly by: CredentialKind | "system"; readonly if_version: IfVersion },
  at: Date,
): Effect.fn.Return<Written<number> | undefined, SqlError.SqlError | PreconditionFailed> {
  const [before] = yield* sql<{ version: number; stopped: boolean }>`
    select switch_version as version, stopped_at is not null as stopped from mailbox where identity_id = ${identity.id}`
  const version = before?.version ?? 0
  if (!matches(change.if_version, version)) return yield* refuse("The mail status", version)
  const stop = change.patch.outgoing === "stopped"
  if (before?.stopped === stop) return { value: 0 }
  const reason = change.patch.reason ?? null
  const eventId = yield* makeUuidV7
  const [row] = yield* sql<{ owned: boolean; queued: number }>`
    with ${fence}, turned as (
      update mailbox set switch_version = switch_version + 1, stopped_at = ${stop ? at : null}::timestamptz,
             stopped_by = ${stop ? change.by : null}::text, stop_reason = ${stop ? reason : null}::text
      where identity_id = ${identity.id} and exists (select from fence)
      returning identity_id
    ),
    ${raiseForIdentity(sql, "turned", {
      eventId,
      type: stop ? "mail.stopped" : "mail.started",
      org: identity.orgId,
      identity,
      data: { by: change.by, reason },
      at,
    })}
    select exists (select from fence) as owned, (select count(*) from queued)::int as queued`
  return committed(row, row?.queued ?? 0)
})
