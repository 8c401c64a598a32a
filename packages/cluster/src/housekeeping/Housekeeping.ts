/** Removes what is old. Every age stands in one table; each removal goes in batches, so that none holds locks for long. */
import { system } from "@svc/domain/account/By"
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { raiseForOrg } from "../events/Raise.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

const batch = 5_000

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
  { table: "public_limit", key: "key", when: "window_start < now() - interval '10 minutes'" },
  { table: "export", key: "id", when: "expires_at < now()" },
  { table: "device_authorization", key: "id", when: "expires_at < now() - interval '1 day'" },
  { table: "page_view", key: "ctid", when: "day < current_date - 400" },
  { table: "tunnel_transfer", key: "ctid", when: "day < current_date - 40" },
  { table: "system_mail", key: "id", when: "received_at < now() - interval '90 days'" },
  { table: "unanswered_mail", key: "key", when: `received_at < now() - interval '${Timing.mailRepeat}'` },
  { table: "greylist", key: "key", when: "seen_at < now() - interval '36 days'" },
  { table: "removed_message", key: "id", when: "removed_at < now() - interval '90 days'" },
  // Stored ahead of a message that its actor then did not take.
  {
    table: "message_content",
    key: "message_id",
    when: "created_at < now() - interval '1 day' and not exists (select from message m where m.id = message_content.message_id)",
  },
] as const

/** A key that was approved and not collected in time is nobody's. */
export const revokeUncollected = Effect.gen(function* () {
  const sql = yield* Unhurried
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    with left_over as (
      update device_authorization set sealed_key = null
      where status = 'approved' and expires_at < now() and sealed_key is not null returning org_id, key_id
    ),
    revoked as (
      update api_key k set revoked_at = ${at} from left_over l where k.id = l.key_id and k.revoked_at is null
      returning k.id, k.org_id, k.name
    ),
    ${raiseForOrg({ sql, org: sql`org_id`, at, by: system }, "revoked", "api_key.revoked", {
      key_id: sql`id`,
      name: sql`name`,
      scope: "org",
      identity_id: null,
      handle: null,
    })}
    select 1`
})

const sweep = Effect.gen(function* () {
  yield* revokeUncollected
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
    Effect.repeat(Schedule.spaced(Timing.housekeeping)),
    Effect.asVoid,
  ),
)
