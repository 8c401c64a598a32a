/**
 * Stores mail for `postmaster@` and `abuse@`, which every domain must accept, until it is forwarded to the operator.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Writes } from "@svc/cluster/store/Database"
import { storeSlices, sentAtMost } from "@svc/cluster/mail/MessageContent"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { Timing } from "../Timing.ts"
import type { IncomingMail } from "./Reception.ts"
import { joined } from "./SlicedWork.ts"
import { keyOf, operator } from "./Transactions.ts"

const lost = new Unavailable({ detail: "The message could not be stored.", retry_after_seconds: 5 })

const make = Effect.gen(function* () {
  const sql = yield* Writes
  return {
    /**
     * Stores a message. A retry of a transaction that was not answered with 250 is not stored again ({@link
     * Transactions}).
     */
    store: Effect.fn("SystemMail.store")(function* (mail: IncomingMail) {
      const id = yield* makeUuidV7
      const now = new Date(yield* Clock.currentTimeMillis)
      const raw = yield* joined(mail.raw)
      const inSlices = raw.length > sentAtMost
      if (inSlices) yield* storeSlices(sql, id, 0, raw, now)
      const whole = inSlices
        ? sql`select string_agg(bytes, ''::bytea order by n) as raw from message_slice where message_id = ${id}::uuid`
        : sql`select ${raw}::bytea as raw`
      const store = Effect.flatMap(
        sql<{ bytes: number; stored: boolean }>`
          with whole as (${whole}),
          mark as (
            insert into unanswered_mail (key, message_id, received_at)
            select ${keyOf(mail, operator)}::bytea, ${id}::uuid, ${now}::timestamptz
            from whole where length(raw) = ${raw.length}::int
            on conflict (key) do nothing returning 1
          ),
          kept as (
            insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
            select ${id}::uuid, ${mail.envelopeFrom}::text, ${mail.sha256}::bytea, ${mail.parsed.subject}::text, whole.raw,
                   ${now}::timestamptz
            from mark, whole returning 1
          ),
          gone as (delete from message_slice where message_id = ${id}::uuid and exists (select from kept))
          select coalesce(length(raw), 0) as bytes, exists (select from kept) as stored from whole`,
        // If stored slices were lost, the sender retries the message.
        ([row]) => (row?.bytes === raw.length ? Effect.succeed(row.stored) : Effect.fail(lost)),
      )
      // Another process may have answered the previous transaction and be about to delete its mark.
      if (!(yield* store)) yield* Effect.andThen(Effect.sleep(Timing.smtpRepeatPause), store)
    }),
  }
})

export class SystemMail extends Context.Service<SystemMail, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/SystemMail",
) {
  static readonly layer = Layer.effect(SystemMail, make)
}
