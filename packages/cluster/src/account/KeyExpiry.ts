/**
 * Notifies accounts 7 days before, one day before and when a key expires. For a replaced key, only the last
 * notification is sent.
 */
import { system } from "@svc/domain/account/Initiator"
import { Clock, Effect } from "effect"
import { instant, raiseForOrg } from "../events/Raise.ts"
import { Unhurried } from "../store/Database.ts"

const batch = 500

/** Raises the Events that are due, each once: the same statement sets the time of the next. */
export const notifyExpiring = Effect.gen(function* () {
  const sql = yield* Unhurried
  const at = new Date(yield* Clock.currentTimeMillis)
  const key = {
    key_id: sql`id`,
    name: sql`name`,
    scope: sql`case when identity_id is null then 'org' else 'identity' end`,
    identity_id: sql`identity_id`,
    handle: sql`handle`,
    expires_at: instant(sql, "expires_at"),
  }
  const change = { sql, org: sql`org_id`, at, by: system }
  yield* sql<{ n: number }>`
    with due as (
      select id from api_key where end_told_at <= ${at}::timestamptz and revoked_at is null
      order by end_told_at limit ${batch} for update skip locked
    ),
    told as (
      update api_key k set end_told_at = case
        when expires_at <= ${at}::timestamptz then null
        when expires_at - interval '1 day' <= ${at}::timestamptz then expires_at
        else expires_at - interval '1 day' end
      from due where k.id = due.id
      returning k.id, k.org_id, k.name, k.identity_id, k.expires_at,
        (select handle from identity i where i.id = k.identity_id) as handle
    ),
    ended as (select * from told where expires_at <= ${at}::timestamptz),
    ending as (select * from told where expires_at > ${at}::timestamptz),
    ${raiseForOrg(change, "ended", "api_key.expired", key, { as: "told_ended" })},
    ${raiseForOrg(change, "ending", "api_key.expiring", key, { as: "told_ending" })}
    select count(*)::int as n from told`.pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
})
