/**
 * Messages that wait for a person's approval. Approving a message checks it again, since the mail status and the
 * Allowed Recipients may have changed, and makes its outbox rows due. A message that is not approved is never sent; it
 * stays in the Mailbox, where its sender can read the reason. Messages that nobody decides on expire, which is
 * background work of the actor.
 */
import { toPublic } from "@svc/domain/Ids"
import { system } from "@svc/domain/account/Initiator"
import type { DecideMail } from "@svc/domain/mail/SendingProtocol"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import { Conflict, NotFound } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import type { Rpc } from "effect/rpc"
import type { SqlError } from "effect/sql"
import { type ActorHandlers, once } from "../../actor/ActorHandlers.ts"
import { commit, type OwnIdentity, type Write } from "../../actor/Write.ts"
import { auditWriteWith } from "../../audit/AuditWrite.ts"
import { raise } from "../../events/Raise.ts"
import { Writes } from "../../store/Database.ts"
import type { UsageCounters } from "../../usage/UsageCounters.ts"
import * as NextDue from "../../work/NextDue.ts"
import type { Source } from "../../work/Source.ts"
import { judgeRecipients, paused, type Refused, refusedOf } from "./SendingPolicy.ts"

type Decision = Rpc.Payload<typeof DecideMail>

export const handlers = ({ onReady }: ActorHandlers, usage: UsageCounters["Service"]) => ({
  DecideMail: onReady(once("DecideMail", (write: Write, decision: Decision) => decide(write, decision, usage))),
})

interface Waiting {
  readonly status: string
  readonly lapsed: boolean
  readonly subject: string
  /** The hexadecimal SHA-256 of the content that people review, and whether the stored content still matches it. */
  readonly content_sha256: string
  readonly intact: boolean
  readonly addresses: ReadonlyArray<string>
  readonly stopped: boolean
  readonly stop_reason: string | null
}

const waitingOf = ({ sql, identity, at }: Write, id: string, approve: boolean) =>
  Effect.map(
    sql<Waiting>`
      select o.status, o.status = 'awaiting_approval' and o.lapses_at <= ${at} as lapsed, m.summary ->> 'subject' as subject,
             encode(m.sha256, 'hex') as content_sha256,
             ${approve ? sql`(select sha256(c.raw) = m.sha256 from message_content c where c.message_id = m.id)` : sql`true`} as intact,
             array(select r.address from outgoing_recipient r where r.message_id = o.message_id order by r.address) as addresses,
             b.stopped_at is not null as stopped, b.stop_reason
      from outgoing o join message m on m.id = o.message_id join mailbox b on b.identity_id = o.identity_id
      where o.message_id = ${id} and o.identity_id = ${identity.id}`,
    ([row]) => row,
  )

const decide = Effect.fnUntraced(function* (write: Write, decision: Decision, usage: UsageCounters["Service"]) {
  const { message_id, approve, reason } = decision
  const waiting = yield* waitingOf(write, message_id, approve)
  if (waiting === undefined) return yield* new NotFound({ detail: "No message with this id waits for a decision." })
  if (waiting.status !== "awaiting_approval" || waiting.lapsed) {
    return yield* new Conflict({
      detail: waiting.lapsed
        ? "The message expired before anybody decided on it."
        : "The message is not waiting for approval.",
    })
  }
  const { content_sha256 } = waiting
  if (!waiting.intact || (decision.content_sha256 ?? content_sha256) !== content_sha256) {
    return yield* new Conflict({ detail: "The decision refers to different content than the message has." })
  }
  if (!approve) {
    yield* refuse(write, [message_id], reason)
    return
  }
  if (waiting.stopped) return yield* paused(waiting.stop_reason)
  const { sql, identity, at, by } = write
  const recipients = waiting.addresses.map((address) => ({ address, path: "" }))
  const [judged] = yield* sql<{ refused: ReadonlyArray<Refused> }>`
    select ${refusedOf(sql, { ...identity, at }, sql`unnest(${waiting.addresses.map(AddrSpec.sameAs)}::text[])`)} as refused`
  yield* judgeRecipients(write, waiting.subject, recipients, judged?.refused ?? [])
  yield* commit(
    write,
    sql`
    decided as (
      update outgoing set status = 'queued', decided_at = ${at}::timestamptz, decided_by = ${by.kind}::text,
             decision_reason = ${reason}::text
      where message_id = ${message_id}::uuid and identity_id = ${identity.id}::uuid and status = 'awaiting_approval'
        and exists (select from fence)
      returning message_id
    ),
    due as (
      update outbox set next_attempt_at = ${at}::timestamptz from decided where outbox.message_id = decided.message_id
    ),
    ${raise(write, "decided", "email.approved", {
      message_id: toPublic("msg_", message_id),
      by: by.kind,
      content_sha256,
    })} ${auditWriteWith(sql, write.note, "decided")}`,
    { raises: true },
  )
  usage.add({ identity: identity.id }, "mail_sent", { count: 1 })
  write.due()
})

/** Rejects the messages and raises an Event for each. */
const refuse = (write: Write, ids: ReadonlyArray<string>, reason: string | null) => {
  const { sql, identity, at, by } = write
  const rejected = ids.map((id) => ({ id, public_id: toPublic("msg_", id) }))
  return commit(
    write,
    sql`
    decided as (
      update outgoing o set status = 'refused', decided_at = ${at}::timestamptz, decided_by = ${by.kind}::text,
             decision_reason = ${reason}::text
      from jsonb_to_recordset(${JSON.stringify(rejected)}::jsonb) as t (id uuid, public_id text)
      where o.message_id = t.id and o.identity_id = ${identity.id}::uuid and o.status = 'awaiting_approval'
        and exists (select from fence)
      returning t.public_id
    ),
    ${raise(write, "decided", "email.approval_refused", { message_id: sql`public_id`, by: by.kind, reason })}
    ${auditWriteWith(sql, write.note, "decided")}`,
    { raises: true },
  )
}

/** The reason shown for a message that expired. */
const expired = "expired"
const batch = 100

/** Returns when an Identity's next message expires. */
export class ApprovalExpiry extends Context.Service<
  ApprovalExpiry,
  { readonly next: (identityId: string) => Effect.Effect<Date | null, SqlError.SqlError> }
>()("@svc/cluster/mail/sending/ApprovalExpiry") {
  static readonly layer = Layer.effect(
    ApprovalExpiry,
    Effect.map(
      NextDue.make(
        (sql, identityId) => sql`
          select min(o.lapses_at) from outgoing o join identity i on i.id = o.identity_id
          where o.identity_id = ${identityId} and o.status = 'awaiting_approval' and i.status = 'ready'`,
      ),
      (next) => ({ next }),
    ),
  )
}

/** Work source that expires undecided messages. */
export const source: Source<OwnIdentity, ApprovalExpiry | Writes> = {
  name: "approvals",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ canonical: string }>`
        select i.canonical from (
          select identity_id, min(lapses_at) as due from outgoing
          where status = 'awaiting_approval' and lapses_at <= ${late}
          group by identity_id order by due limit ${atMost}
        ) o join identity i on i.id = o.identity_id where i.status = 'ready' order by o.due`,
      (rows) => rows.map(({ canonical }) => canonical),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Writes
    const lapses = yield* ApprovalExpiry
    return {
      dispatch: Effect.fnUntraced(function* (identity) {
        const at = new Date(yield* Clock.currentTimeMillis)
        const lapsed = yield* sql<{ id: string }>`
          select o.message_id as id from outgoing o join identity i on i.id = o.identity_id
          where o.identity_id = ${identity.id} and o.status = 'awaiting_approval' and o.lapses_at <= ${at} and i.status = 'ready'
          order by o.lapses_at limit ${batch}`
        if (lapsed.length === 0) return false
        yield* ownership.write(system, (fenced) =>
          refuse(
            { ...fenced, identity },
            lapsed.map(({ id }) => id),
            expired,
          ),
        )
        return true
      }),
      isSeldomDue: true,
      nextDue: (identity) => lapses.next(identity.id),
      isBusy: () => false,
      settle: Effect.void,
    }
  }),
}
