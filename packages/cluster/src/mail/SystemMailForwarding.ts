/** Forwards mail for `postmaster@` and `abuse@` to the operator (`SVC_POSTMASTER_TO`), unchanged. */
import { Clock, Effect, Result, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { postponed } from "./LetterRetry.ts"
import { inSlices } from "./MessageContent.ts"
import { SystemMailer } from "./SystemMailer.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface Waiting {
  readonly id: string
  readonly bytes: number
}

/** Forwards all due messages. */
export const forward = (to: string) =>
  Effect.gen(function* () {
    const sql = yield* Unhurried
    const mailer = yield* SystemMailer
    const now = new Date(yield* Clock.currentTimeMillis)
    const claim = sql<Waiting>`
      update system_mail set ${postponed(sql, now)}
      where id = (
        select id from system_mail where forwarded_at is null and next_attempt_at <= ${now}::timestamptz
        order by next_attempt_at, received_at, id limit 1
      )
      returning id, length(raw) as bytes`
    for (let [due] = yield* claim; due !== undefined; [due] = yield* claim) {
      const { id, bytes } = due
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
