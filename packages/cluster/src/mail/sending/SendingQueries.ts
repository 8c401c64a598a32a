/** What became of messages that go out, and those that wait for a person, as callers read them. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { Delivery, type Outbound, outbound } from "@svc/domain/mail/Delivery"
import { Address, Attachment } from "@svc/domain/mail/Message"
import type { PendingApproval } from "@svc/domain/mail/Sending"
import type { PageRequest } from "@svc/domain/Paging"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import * as Cursors from "../../sealing/Cursors.ts"
import { Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Reads, type Sql } from "../../store/Database.ts"

const Row = Schema.Struct({
  status: outbound.status,
  asked_by: Schema.NullOr(Schema.String),
  created_at: Schema.Date,
  lapses_at: Schema.NullOr(Schema.Date),
  decided_at: Schema.NullOr(Schema.Date),
  decided_by: Schema.NullOr(Schema.Literals(["session", "admin_key", "identity_key", "system"])),
  decision_reason: Schema.NullOr(Schema.String),
})
const decodeRow = Schema.decodeUnknownEffect(Row)

const DeliveryRows = Schema.Array(
  Schema.Struct({
    address: Schema.String,
    status: Delivery.fields.status,
    reply: Delivery.fields.reply,
    reason: Schema.NullOr(Schema.String),
    next_attempt_at: Schema.NullOr(Schema.Date),
    updated_at: Schema.Date,
  }),
)
const decodeDeliveries = Schema.decodeUnknownEffect(DeliveryRows)

/** A message that goes out; undefined for one that came in, or that went out before there was an outbox. */
export const outboundOf = (
  sql: Sql,
  identityId: IdentityId,
  messageId: string,
): Effect.Effect<Outbound | undefined, SqlError.SqlError> =>
  Effect.gen(function* () {
    const [found] = yield* sql`
      select status, asked_by, created_at, lapses_at, decided_at, decided_by, decision_reason
      from outgoing where message_id = ${messageId} and identity_id = ${identityId}`
    if (found === undefined) return undefined
    const row = yield* Effect.orDie(decodeRow(found))
    const delivery = yield* Effect.orDie(
      decodeDeliveries(
        yield* sql`
          select r.address, r.status, r.reply, o.held as reason, r.changed_at as updated_at,
                 case when r.status in ('queued', 'deferred') and o.attempt_started_at is null then o.next_attempt_at end as next_attempt_at
          from outgoing_recipient r left join outbox o on o.id = r.outbox_id
          where r.message_id = ${messageId} order by r.address`,
      ),
    )
    const shown: Outbound = {
      status: row.status,
      approval:
        row.lapses_at === null
          ? null
          : {
              requested_at: row.created_at,
              requested_by: row.asked_by,
              expires_at: row.lapses_at,
              decided_at: row.decided_at,
              decided_by: row.decided_by,
              reason: row.decision_reason,
            },
      delivery,
    }
    return shown
  })

const PendingSummary = Schema.Struct({
  to: Schema.Array(Address),
  cc: Schema.Array(Address),
  bcc: Schema.Array(Address),
  subject: Schema.String,
  snippet: Schema.String,
  attachments: Schema.Array(Attachment),
})
const decodePending = Schema.decodeUnknownSync(PendingSummary)

interface PendingRow {
  readonly id: string
  readonly summary: unknown
  readonly size: number
  readonly created_at: Date
  readonly asked_by: string | null
  readonly lapses_at: Date
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  return {
    /** Messages that wait for a person, oldest first. */
    approvals: (identityId: IdentityId, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `approvals/${identityId}`,
          request,
          (behind, atMost) => sql<PendingRow>`
            select o.message_id as id, m.summary, m.size, o.created_at, o.asked_by, o.lapses_at
            from outgoing o join message m on m.id = o.message_id
            where o.identity_id = ${identityId} and o.status = 'awaiting_approval'
              ${behind === undefined ? sql`` : sql`and o.message_id > ${behind}::uuid`}
            order by o.message_id limit ${atMost}`,
          ({ id }) => id,
          (row): PendingApproval => ({
            ...decodePending(row.summary),
            id: toPublic("msg_", row.id),
            size: row.size,
            requested_at: row.created_at,
            requested_by: row.asked_by,
            expires_at: row.lapses_at,
          }),
        ),
      ),

    /** What became of one message. */
    outbound: Effect.fnUntraced(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      const found = uuid === undefined ? undefined : yield* outboundOf(sql, identityId, uuid)
      if (found === undefined) return yield* new NotFound({ detail: "There is no such message." })
      return found
    }, orUnavailable),
  }
})

export class SendingQueries extends Context.Service<SendingQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/sending/SendingQueries",
) {
  static readonly layer = Layer.effect(SendingQueries, make)
}
