/** Reads the delivery state of outgoing messages, and messages that wait for approval. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { Delivery, type Outbound, outbound } from "@svc/domain/mail/Delivery"
import { Address, Attachment } from "@svc/domain/mail/Message"
import { listedWhole, type PendingApproval } from "@svc/domain/mail/Sending"
import type { PageRequest } from "@svc/domain/Paging"
import { Conflict, NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import * as Cursors from "../../sealing/Cursors.ts"
import { Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Reads, type Sql } from "../../store/Database.ts"
import { differenceOf } from "./PartsDifference.ts"

const Row = Schema.Struct({
  status: outbound.status,
  asked_by: Schema.NullOr(Schema.String),
  created_at: Schema.Date,
  lapses_at: Schema.NullOr(Schema.Date),
  decided_at: Schema.NullOr(Schema.Date),
  decided_by: Schema.NullOr(Schema.Literals(["session", "admin_key", "identity_key", "system"])),
  decision_reason: Schema.NullOr(Schema.String),
  content_sha256: Schema.String,
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

/** Returns the delivery state of an outgoing message; undefined for a message that the service did not send. */
export const outboundOf = (
  sql: Sql,
  identityId: IdentityId,
  messageId: string,
): Effect.Effect<Outbound | undefined, SqlError.SqlError> =>
  Effect.gen(function* () {
    const [found] = yield* sql`
      select o.status, o.asked_by, o.created_at, o.lapses_at, o.decided_at, o.decided_by, o.decision_reason,
             encode(m.sha256, 'hex') as content_sha256
      from outgoing o join message m on m.id = o.message_id
      where o.message_id = ${messageId} and o.identity_id = ${identityId}`
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
              // Only a caller that reads the whole waiting message gets the hash.
              content_sha256: row.decided_at === null ? null : row.content_sha256,
            },
      delivery,
    }
    return shown
  })

const PendingSummary = Schema.Struct({
  from: Schema.NullOr(Address),
  reply_to: Schema.Array(Address),
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
  readonly is_whole: boolean
  readonly html: string | null
  readonly text: string | null
  readonly content_sha256: string
}

/** A message that waits for approval: when approval was requested, and its hash. */
interface Waiting {
  readonly requested_at: Date
  readonly requested_by: string | null
  readonly expires_at: Date
  readonly content_sha256: string
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  return {
    /** Lists messages that wait for approval, oldest first. */
    approvals: (identityId: IdentityId, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `approvals/${identityId}`,
          request,
          (behind, atMost) => sql<PendingRow>`
            select p.*, case when is_whole then c.html end as html, case when is_whole then c.text end as text
            from (
              select o.message_id as id, m.summary, m.size, o.created_at, o.asked_by, o.lapses_at,
                     encode(m.sha256, 'hex') as content_sha256,
                     (select coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0) <= ${listedWhole}::int
                      from message_content c where c.message_id = o.message_id) as is_whole
              from outgoing o join message m on m.id = o.message_id
              where o.identity_id = ${identityId} and o.status = 'awaiting_approval'
                ${behind === undefined ? sql`` : sql`and o.message_id > ${behind}::uuid`}
              order by o.message_id limit ${atMost}
            ) p join message_content c on c.message_id = p.id order by p.id`,
          ({ id }) => id,
          (row): PendingApproval => ({
            ...decodePending(row.summary),
            id: toPublic("msg_", row.id),
            size: row.size,
            requested_at: row.created_at,
            requested_by: row.asked_by,
            expires_at: row.lapses_at,
            html: row.html,
            text: row.text,
            differences: differenceOf(row.html, row.text),
            truncated: !row.is_whole,
            content_sha256: row.is_whole ? row.content_sha256 : null,
          }),
        ),
      ),

    /**
     * Returns when approval was requested and the hash. Fails with `conflict` if the message does not wait for
     * approval.
     */
    waiting: Effect.fnUntraced(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      const [row] =
        uuid === undefined
          ? []
          : yield* sql<Waiting & { readonly status: string }>`
              select o.status, o.created_at as requested_at, o.asked_by as requested_by, o.lapses_at as expires_at,
                     encode(m.sha256, 'hex') as content_sha256
              from outgoing o join message m on m.id = o.message_id
              where o.message_id = ${uuid} and o.identity_id = ${identityId}`
      if (row === undefined) return yield* new NotFound({ detail: "The message does not exist." })
      const { status, ...waiting } = row
      if (status !== "awaiting_approval") {
        return yield* new Conflict({ detail: "The message is not waiting for approval." })
      }
      return waiting
    }, orUnavailable),

    /** Returns the delivery state of one message. */
    outbound: Effect.fnUntraced(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      const found = uuid === undefined ? undefined : yield* outboundOf(sql, identityId, uuid)
      if (found === undefined) return yield* new NotFound({ detail: "The message does not exist." })
      return found
    }, orUnavailable),
  }
})

export class SendingQueries extends Context.Service<SendingQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/sending/SendingQueries",
) {
  static readonly layer = Layer.effect(SendingQueries, make)
}
