/**
 * Ends Grants in the statement that causes their end, together with the Event. Their tokens become invalid at the same
 * time, because every lookup checks the Grant.
 */
import { type Initiator, system } from "@svc/domain/account/Initiator"
import type { GrantEnd } from "@svc/domain/oauth/Grant"
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import { raiseForOrg } from "../events/Raise.ts"
import type { StepSubject } from "../saga/Step.ts"
import { type Sql, Unhurried } from "../store/Database.ts"

/** Grants ended by one statement. */
const batch = 5_000

/** CTEs `ended` (active Grants that `which` selects) and their Events `grant.revoked`. */
export const endGrants = (
  write: { readonly sql: Sql; readonly at: Date; readonly by: Initiator },
  which: Statement.Fragment,
  reason: GrantEnd,
): Statement.Fragment => {
  const { sql, at, by } = write
  return sql`
    ended as (
      update client_grant set revoked_at = ${at}, reason = ${reason} where ${which} and revoked_at is null
      returning id, org_id, client_id, client_name, redirect_host
    ),
    ${raiseForOrg(
      { sql, org: sql`org_id`, at, by },
      "ended",
      "grant.revoked",
      { grant_id: sql`id`, client_id: sql`client_id`, client_name: sql`client_name`, reason },
      { as: "told_ended" },
    )}`
}

/** CTEs that remove an Identity from all Grants; a Grant for this Identity alone ends. */
export const withoutIdentity = (subject: StepSubject): Statement.Fragment => {
  const { sql, identity } = subject
  const named = sql`org_id = ${identity.orgId}::uuid and identities @> array[${identity.id}::uuid] and exists (select from fence)`
  return sql`
    ${endGrants(subject, sql`${named} and cardinality(identities) = 1`, "account")},
    narrowed as (
      update client_grant set identities = array_remove(identities, ${identity.id}::uuid)
      where ${named} and cardinality(identities) > 1 and revoked_at is null
    )`
}

/**
 * Ends Grants that have expired or that nobody can use any more: the code was never exchanged, or no token was used for
 * a token's lifetime. An hour is left for requests in flight.
 */
export const endExpired = Effect.gen(function* () {
  const sql = yield* Unhurried
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    with ${endGrants(
      { sql, at, by: system },
      sql`id in (
        select id from client_grant g where revoked_at is null and (
          expires_at <= now() or (created_at < now() - interval '1 hour' and not exists (
            select from oauth_token t where t.grant_id = g.id and t.expires_at > now() - interval '1 hour')))
        limit ${batch})`,
      "expired",
    )}
    select 1`
})
