/** Hands the operator what came for `postmaster@` and `abuse@` (`SVC_POSTMASTER_TO`), each message as it arrived. */
import { Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { SystemMailer } from "./SystemMailer.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

const batch = 20

const forward = (to: string) =>
  Effect.gen(function* () {
    const sql = yield* Unhurried
    const mailer = yield* SystemMailer
    const waiting = yield* sql<{ id: string; raw: Uint8Array }>`
      select id, raw from system_mail where forwarded_at is null order by received_at limit ${batch}`
    for (const { id, raw } of waiting) {
      yield* mailer.forward({ to, raw })
      yield* sql`update system_mail set forwarded_at = now() where id = ${id}`
    }
    return waiting.length
  }).pipe(Effect.repeat({ while: (count) => count === batch }))

/** One process of the cluster does it, so that nothing goes out twice; what the relay refuses is tried again. */
export const layer = (options: { readonly to: string }) =>
  Singleton.make(
    "SystemMailForwarding",
    forward(options.to).pipe(
      Effect.catchCause((cause) => Effect.logWarning("Mail for the operator was not forwarded", cause)),
      Effect.repeat(Schedule.spaced(Timing.systemMailForwarding)),
      Effect.asVoid,
    ),
  )
