/** Mail for `postmaster@` and `abuse@`, which every domain must take: kept until the operator has it. */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Writes } from "@svc/cluster/store/Database"
import { Clock, Context, Effect, Layer } from "effect"
import { Timing } from "../Timing.ts"
import type { IncomingMail } from "./Reception.ts"
import { keyOf, operator } from "./Transactions.ts"

const make = Effect.gen(function* () {
  const sql = yield* Writes
  return {
    /** What repeats a transaction that was not answered with 250 is not stored again ({@link Transactions}). */
    store: Effect.fn("SystemMail.store")(function* (mail: IncomingMail) {
      const id = yield* makeUuidV7
      const now = new Date(yield* Clock.currentTimeMillis)
      const store = sql`
        with mark as (
          insert into unanswered_mail (key, message_id, received_at)
          values (${keyOf(mail, operator)}, ${id}, ${now}) on conflict (key) do nothing returning 1
        )
        insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
        select ${id}::uuid, ${mail.envelopeFrom}::text, ${mail.sha256}::bytea, ${mail.parsed.subject}::text, ${mail.raw}::bytea,
               ${now}::timestamptz
        from mark returning 1`
      const stored = yield* store
      // Perhaps another process has answered the one before, and its mark is about to go.
      if (stored.length === 0) yield* Effect.andThen(Effect.sleep(Timing.smtpRepeatPause), store)
    }),
  }
})

export class SystemMail extends Context.Service<SystemMail, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/SystemMail",
) {
  static readonly layer = Layer.effect(SystemMail, make)
}
