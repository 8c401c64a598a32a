/** Removes what is old. Every age stands in one table; each removal goes in batches, so that none holds locks for long. */
import { Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { Unhurried } from "./Database.ts"

const batch = 5_000
const interval = "10 minutes"

/** What goes, and when: a table, its key, and the condition under which a row is of no use any more. */
const removals = [
  { table: "magic_link", key: "token_hash", when: "expires_at < now() - interval '1 day'" },
  { table: "session", key: "id", when: "expires_at < now()" },
  { table: "show_once", key: "identity_id", when: "expires_at < now()" },
  { table: "signing_secret", key: "id", when: "retires_at < now()" },
  {
    table: "delivery",
    key: "id",
    when: "status in ('delivered', 'failed') and created_at < now() - interval '90 days'",
  },
  { table: "system_mail", key: "id", when: "received_at < now() - interval '90 days'" },
  // Stored ahead of a message that its actor then did not take.
  {
    table: "message_content",
    key: "message_id",
    when: "created_at < now() - interval '1 day' and not exists (select from message m where m.id = message_content.message_id)",
  },
] as const

const sweep = Effect.gen(function* () {
  const sql = yield* Unhurried
  yield* Effect.forEach(
    removals,
    ({ table, key, when }) =>
      sql
        .unsafe<{ n: number }>(
          `with gone as (delete from ${table} where ${key} in (select ${key} from ${table} where ${when} limit ${batch}) returning 1)
           select count(*)::int as n from gone`,
        )
        .pipe(Effect.repeat({ while: ([row]) => row?.n === batch })),
    { discard: true },
  )
})

export const layer = Singleton.make(
  "Housekeeping",
  sweep.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Housekeeping failed", cause)),
    Effect.repeat(Schedule.spaced(interval)),
    Effect.asVoid,
  ),
)
