/** Deletes expired rows. One table lists all retention times. Rows are deleted in batches, so that no lock is held for long. */
import { system } from "@svc/domain/account/Initiator"
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import * as KeyExpiry from "../account/KeyExpiry.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { endExpired } from "../credentials/GrantRevocation.ts"
import * as Singletons from "../observe/Singletons.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

const batch = 5_000

/** The tables with expired rows: the key of a table, and the condition for an expired row (docs/operations.md). */
export const removals = [
  { table: "magic_link", key: "token_hash", when: "expires_at < now() - interval '1 day'" },
  { table: "session", key: "id", when: "expires_at < now()" },
  { table: "show_once", key: "identity_id", when: "expires_at < now()" },
  { table: "signing_secret", key: "id", when: "retires_at < now()" },
  {
    table: "delivery",
    key: "id",
    when: "status in ('delivered', 'failed') and created_at < now() - interval '90 days'",
  },
  { table: "idempotency_record", key: "ctid", when: "started_at < now() - interval '1 day'" },
  { table: "actor_command", key: "ctid", when: "done_at < now() - interval '1 day'" },
  { table: "actor_permit", key: "ctid", when: "until < now() - interval '10 minutes'" },
  { table: "public_limit", key: "key", when: "window_start < now() - interval '10 minutes'" },
  { table: "export", key: "id", when: "expires_at < now()" },
  { table: "device_authorization", key: "id", when: "expires_at < now() - interval '1 day'" },
  { table: "page_view", key: "ctid", when: "day < current_date - 400" },
  { table: "tunnel_transfer", key: "ctid", when: "day < current_date - 40" },
  { table: "usage_hour", key: "ctid", when: "hour < now() - interval '92 days'" },
  { table: "system_mail", key: "id", when: "received_at < now() - interval '90 days'" },
  { table: "grant_notice", key: "id", when: "created_at < now() - interval '30 days'" },
  { table: "unanswered_mail", key: "key", when: `received_at < now() - interval '${Timing.mailRepeat}'` },
  { table: "greylist", key: "key", when: "seen_at < now() - interval '36 days'" },
  // Expired keys stay listed for a while.
  { table: "api_key", key: "id", when: "expires_at < now() - interval '30 days' and end_told_at is null" },
  { table: "backup", key: "finished_at", when: "finished_at < now() - interval '1 year'" },
  { table: "connector_authorization", key: "state_hash", when: "expires_at < now()" },
  { table: "connector_sent", key: "command_id", when: "begun_at < now() - interval '1 day'" },
  { table: "connector_heard", key: "ctid", when: "heard_at < now() - interval '90 days'" },
  { table: "connector_revocation", key: "id", when: "due_at is null and created_at < now() - interval '90 days'" },
  { table: "oauth_request", key: "id", when: "expires_at < now()" },
  { table: "oauth_token", key: "hash", when: "expires_at < now() - interval '1 day'" },
  { table: "client_grant", key: "id", when: "revoked_at < now() - interval '90 days'" },
  { table: "agent_sign_in", key: "id", when: "expires_at < now() - interval '90 days'" },
  // Registrations without a Grant or a sign-in: those are deleted 90 days after they end. A site waits longer for its first
  // agent than an app for its consent.
  {
    table: "oauth_client",
    key: "id",
    when: `seen_at < now() - case when id_token_alg is null then interval '1 day' else interval '30 days' end
      and not exists (select from client_grant g where g.client_id = oauth_client.id)
      and not exists (select from agent_sign_in s where s.client_id = oauth_client.id)`,
  },
  // Parts and bodies of messages whose gateway crashed while storing them.
  { table: "message_slice", key: "ctid", when: "created_at < now() - interval '1 hour'" },
  {
    table: "message_content",
    key: "message_id",
    when: `identity_id is null and created_at < now() - interval '1 day'
      and not exists (select from message m where m.id = message_content.message_id)`,
  },
  { table: "removed_message", key: "id", when: "removed_at < now() - interval '90 days'" },
  // The conversation of a later reply is found by the messages that exist.
  { table: "thread_reference", key: "ctid", when: "noted_at < now() - interval '180 days'" },
] as const

/** Revokes keys of device logins that were approved but not collected in time. */
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

/** Deletes the deliveries of removed Webhooks, then the rows that list these Webhooks. */
const removeDeliveries = Effect.gen(function* () {
  const sql = yield* Unhurried
  for (const { id } of yield* sql<{ id: string }>`select id from removed_webhook order by removed_at limit ${batch}`) {
    yield* sql<{ n: number }>`
      with gone as (delete from delivery where id in (select id from delivery where webhook_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`.pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
    yield* sql`delete from removed_webhook where id = ${id}`
  }
})

/** Deletes all expired rows. */
export const sweep = Effect.gen(function* () {
  yield* revokeUncollected
  yield* endExpired
  yield* KeyExpiry.notifyExpiring
  yield* removeDeliveries
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
    Effect.tap(Effect.map(Clock.currentTimeMillis, (now) => Singletons.recordRun("Housekeeping", now))),
    Effect.catchCause((cause) => Effect.logWarning("Housekeeping failed", cause)),
    Effect.repeat(Schedule.spaced(Timing.housekeeping)),
    Effect.asVoid,
  ),
)
