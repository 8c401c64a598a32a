/** Makes mail due that was held because no transport was configured, when a process with a transport starts. */
import { Clock, Effect, Layer } from "effect"
import { Unhurried } from "../../../store/Database.ts"
import { MailTransport } from "../MailTransport.ts"

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { carries } = yield* MailTransport
    if (carries.by === "none") return
    const sql = yield* Unhurried
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      update outbox set next_attempt_at = ${at}, held = null
      where held is not null and next_attempt_at > ${at} and attempt_started_at is null`
  }),
)
