/** Mail for `postmaster@` and `abuse@`, which every domain must take: kept until the operator has it. */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Writes } from "@svc/cluster/store/Database"
import { Clock, Context, Effect, Layer } from "effect"
import type { IncomingMail } from "./Reception.ts"

const make = Effect.gen(function* () {
  const sql = yield* Writes
  return {
    store: Effect.fn("SystemMail.store")(function* (mail: IncomingMail) {
      const id = yield* makeUuidV7
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
        values (${id}, ${mail.envelopeFrom}, ${mail.sha256}, ${mail.parsed.subject}, ${mail.raw}, ${now})
        on conflict (sha256, envelope_from) do nothing`
    }),
  }
})

export class SystemMail extends Context.Service<SystemMail, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/SystemMail",
) {
  static readonly layer = Layer.effect(SystemMail, make)
}
