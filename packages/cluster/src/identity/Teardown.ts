/**
 * The teardown saga's steps, in reverse order of provisioning. The last one removes everything the Identity owned in
 * batches, then the Identity itself; its Handle stays taken for ever.
 */
import type { sagaSteps } from "@svc/domain/identity/Identity"
import { Effect } from "effect"
import * as CardSteps from "../card/CardSteps.ts"
import * as ConnectorSteps from "../connectors/ConnectorSteps.ts"
import * as IdentityKeys from "../credentials/IdentityKeys.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { withoutIdentity } from "../credentials/GrantRevocation.ts"
import type { Step } from "../saga/Step.ts"
import { type Sql, Unhurried } from "../store/Database.ts"
import * as TunnelSteps from "../tunnel/TunnelSteps.ts"

const batch = 2_000

/** Rows of the Identity that may be many; each statement is a commit of its own, repeated until nothing is left. */
const removals = (sql: Sql, id: string) => [
  sql`with gone as (delete from placed where ctid in (
        select p.ctid from folder f join placed p on p.folder_id = f.id where f.identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from vanished where ctid in (
        select v.ctid from folder f join vanished v on v.folder_id = f.id where f.identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from message where id in (select id from message where identity_id = ${id} limit ${batch}) returning id),
      contents as (delete from message_content c using gone where c.message_id = gone.id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from search_segment where ctid in (select ctid from search_segment where identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from draft_picture where draft_id in (
        select draft_id from draft_picture where identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from thread_reference where ctid in (select ctid from thread_reference where identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from delivery where id in (
        select d.id from webhook w join delivery d on d.webhook_id = w.id where w.identity_id = ${id} limit ${batch}) returning id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from event where seq in (select seq from event where identity_id = ${id} limit ${batch}) returning seq)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from draft where id in (select id from draft where identity_id = ${id} limit ${batch}) returning id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from connector_heard where ctid in (select ctid from connector_heard where identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from connector_sent where command_id in (select command_id from connector_sent where identity_id = ${id} limit ${batch}) returning 1)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from vault_secret where id in (select id from vault_secret where identity_id = ${id} limit ${batch}) returning id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from export_piece p using export e where e.id = p.export_id and e.identity_id = ${id}
        and (p.export_id, p.member, p.number) in (
          select q.export_id, q.member, q.number from export_piece q join export f on f.id = q.export_id where f.identity_id = ${id} limit ${batch})
        returning 1)
      select count(*)::int as n from gone`,
]

/** Its keys stop working, and no app may act on it any more. */
const credentials: Step = (subject) =>
  Effect.map(IdentityKeys.teardown(subject), ({ rows }) => ({
    rows: subject.sql`${rows}, ${withoutIdentity(subject)}`,
  }))

export const make = Effect.gen(function* () {
  const unhurried = yield* Unhurried

  const removeBelongings = (identityId: string) =>
    Effect.forEach(
      removals(unhurried, identityId),
      (removal) => Effect.repeat(removal, { while: (rows) => (rows as ReadonlyArray<{ n: number }>)[0]!.n === batch }),
      { discard: true },
    )

  /** Together with these rows the actor deletes the Identity's own. */
  const remainder: Step = ({ sql, identity, at, by }) =>
    Effect.as(removeBelongings(identity.id), {
      rows: sql`
        remains as (
          insert into removed_webhook (id, removed_at)
          select id, ${at}::timestamptz from webhook where identity_id = ${identity.id} and exists (select from fence)
          on conflict do nothing
        ),
        leftover as (delete from event where identity_id = ${identity.id} and exists (select from fence)),
        -- Its own exports go with the Identity; one of the whole Org carries its mail too.
        archives as (delete from export where org_id = ${identity.orgId} and identity_id is null and exists (select from fence)),
        ${raiseForOrg({ sql, org: identity.orgId, at, by }, "fence", "identity.deleted", {
          identity_id: identity.id,
          handle: identity.handle,
        })}`,
    })

  const steps: { readonly [Name in (typeof sagaSteps)["teardown"][number]]: Step } = {
    identity_keys: credentials,
    connectors: yield* ConnectorSteps.teardown,
    card: CardSteps.teardown,
    tunnel: TunnelSteps.teardown,
    mailbox: remainder,
  }
  return steps
})
