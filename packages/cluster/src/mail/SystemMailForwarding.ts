/** Forwards mail for `postmaster@` and `abuse@` to the operator (`SVC_POSTMASTER_TO`), unchanged. */
import { Effect, Result, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { inSlices } from "./MessageContent.ts"
import { SystemMailer } from "./SystemMailer.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface Waiting {
  readonly id: string
  readonly received_at: Date
  readonly bytes: number
}

const batch = 20

/**
 * Forwards all waiting messages. A message that the relay rejects is left for the next round and does not block later
 * ones.
 */
const forward = (to: string) =>
  Effect.gen(function* () {
    const sql = yield* Unhurried
    const mailer = yield* SystemMailer
    let last: Waiting | undefined
    while (true) {
      const waiting: ReadonlyArray<Waiting> = yield* sql<Waiting>`
        select id, received_at, length(raw) as bytes from system_mail
        where forwarded_at is null
          ${last === undefined ? sql`` : sql`and (received_at, id) > (${last.received_at}::timestamptz, ${last.id}::uuid)`}
        order by received_at, id limit ${batch}`
      for (const { id, bytes } of waiting) {
        const raw = yield* inSlices(
          bytes,
          (from, count) =>
            sql<{ slice: Uint8Array }>`
            select substring(raw from ${from}::int for ${count}::int) as slice from system_mail where id = ${id}`,
        )
        if (raw === undefined) continue
        const taken = yield* Effect.result(mailer.forward({ to, raw }))
        if (Result.isSuccess(taken)) yield* sql`update system_mail set forwarded_at = now() where id = ${id}`
      }
      if (waiting.length < batch) return
      last = waiting.at(-1)
    }
  })

/** Runs as a singleton, so that no message is forwarded twice; rejected messages are retried. */
export const layer = (options: { readonly to: string }) =>
  Singleton.make(
    "SystemMailForwarding",
    forward(options.to).pipe(
      Effect.catchCause((cause) => Effect.logWarning("Mail for the operator was not forwarded", cause)),
      Effect.repeat(Schedule.spaced(Timing.systemMailForwarding)),
      Effect.asVoid,
    ),
  )
