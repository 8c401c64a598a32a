/**
 * Reads everything that a message is checked against in one query. Concurrent sends of several Identities share it,
 * each within its own actor's turn.
 */
import { sameAs } from "@svc/domain/mail/AddrSpec"
import type { Acceptance, Recipient } from "@svc/domain/mail/SendingProtocol"
import { Effect } from "effect"
import type { Write } from "../../actor/Write.ts"
import { inOrder } from "../../store/Batcher.ts"
import type { Sql } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import { type Refused, refusedOf, type Use, useOf } from "./SendingPolicy.ts"

export interface SendingState extends Use {
  readonly stopped: boolean
  readonly stop_reason: string | null
  readonly approval: "none" | "required"
  readonly bytes_used: string
  /** Whether `limit.near` was raised within the hour. */
  readonly near: boolean
  /** The response for a message with this id that was accepted before. */
  readonly known: Acceptance["status"] | null
  readonly known_id: string | null
  readonly draft: number | null
  /** Recipients that mail may not be sent to. */
  readonly refused: ReadonlyArray<Refused>
}

/** A message to check. */
export interface CheckedSend {
  readonly write: Pick<Write, "identity" | "at">
  /** The uuid of the message. */
  readonly id: string
  readonly recipients: ReadonlyArray<Recipient>
}

/** Reads the state for each message; undefined if the Identity has no Mailbox. */
export const sendingStates = (sql: Sql) => (judged: ReadonlyArray<CheckedSend>) => {
  const people = judged.flatMap(({ recipients }, index) =>
    [...new Set(recipients.map(({ address }) => sameAs(address)))].map((address) => ({ address, n: index + 1 })),
  )
  const requested = { id: sql`requested.identity_id`, orgId: sql`requested.org_id`, at: sql`requested.at` }
  return Effect.map(
    sql<SendingState & { readonly requested: number }>`
      with wanted as materialized (
        select * from unnest(${people.map(({ n }) => n)}::int[], ${people.map(({ address }) => address)}::text[])
          as wanted (n, address)
      )
      select requested.n::int as requested, m.stopped_at is not null as stopped, m.stop_reason, m.approval,
             m.bytes_used::text as bytes_used,
             coalesce(m.mail_near_at > requested.at - make_interval(secs => ${Timing.mailHourMillis / 1000}), false) as near,
             ${useOf(sql, requested)},
             (select case when o.lapses_at is null then 'queued' else 'awaiting_approval' end
              from outgoing o where o.message_id = requested.id and o.identity_id = m.identity_id) as known,
             (select k.message_id from message k where k.id = requested.id and k.identity_id = m.identity_id) as known_id,
             (select d.version from draft d where d.id = requested.id and d.identity_id = m.identity_id) as draft,
             ${refusedOf(sql, requested, sql`(select address from wanted where wanted.n = requested.n)`)} as refused
      from unnest(
        ${judged.map(({ id }) => id)}::uuid[], ${judged.map(({ write }) => write.identity.id)}::uuid[],
        ${judged.map(({ write }) => write.identity.orgId)}::uuid[],
        ${judged.map(({ write }) => write.at.toISOString())}::timestamptz[]
      ) with ordinality as requested (id, identity_id, org_id, at, n)
      join mailbox m on m.identity_id = requested.identity_id`,
    inOrder(judged),
  )
}
