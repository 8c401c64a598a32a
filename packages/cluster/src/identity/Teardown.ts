/**
 * The work of the teardown saga's steps, in reverse order of provisioning. The last one removes everything the
 * Identity owned in batches, then the Identity itself; its Handle stays taken for ever.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { StepName } from "@svc/domain/identity/Identity"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { raiseForOrg } from "../events/Raise.ts"
import { type Sql, Unhurried, Writes } from "../store/Database.ts"
import type { Owned } from "./Ownership.ts"
import type { StepRows } from "./Provisioning.ts"

const batch = 2_000

/** Rows of the Identity that may be many; each statement is a commit of its own, repeated until nothing is left. */
const removals = (sql: Sql, id: string) => [
  sql`with gone as (delete from message where id in (select id from message where identity_id = ${id} limit ${batch}) returning id),
      contents as (delete from message_content c using gone where c.message_id = gone.id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from delivery where id in (select id from delivery where identity_id = ${id} limit ${batch}) returning id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from event where seq in (select seq from event where identity_id = ${id} limit ${batch}) returning seq)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from vault_secret where id in (select id from vault_secret where identity_id = ${id} limit ${batch}) returning id)
      select count(*)::int as n from gone`,
  sql`with gone as (delete from export_piece p using export e where e.id = p.export_id and e.identity_id = ${id}
        and (p.export_id, p.member, p.number) in (
          select q.export_id, q.member, q.number from export_piece q join export f on f.id = q.export_id where f.identity_id = ${id} limit ${batch})
        returning 1)
      select count(*)::int as n from gone`,
]

export const make = Effect.gen(function* () {
  const sql = yield* Writes
  const unhurried = yield* Unhurried

  const revokeKeys = Effect.fnUntraced(function* (identity: Owned, now: Date) {
    const keys = yield* sql<{ id: string; name: string }>`
      select id, name from api_key where identity_id = ${identity.id} and revoked_at is null`
    const events = yield* Effect.forEach(keys, (key) =>
      Effect.map(makeUuidV7, (eventId) => ({
        eventId,
        data: { key_id: key.id, name: key.name, scope: "identity", handle: identity.handle },
      })),
    )
    return {
      rows: sql`
        revoked as (
          update api_key set revoked_at = ${now}
          where identity_id = ${identity.id} and revoked_at is null and exists (select from fence) returning id
        ),
        forgotten as (delete from show_once where identity_id = ${identity.id} and exists (select from fence)),
        told as (
          insert into event (id, org_id, type, data, created_at)
          select t.id, ${identity.orgId}::uuid, 'api_key.revoked', t.data, ${now}::timestamptz
          from unnest(${events.map((e) => e.eventId)}::uuid[], ${events.map((e) => JSON.stringify(e.data))}::jsonb[]) as t (id, data), fence
        )`,
      made: sql`true`,
      otherwise: "",
    }
  })

  const rowsOf = (step: StepName, identity: Owned, now: Date): Effect.Effect<StepRows, SqlError.SqlError> => {
    switch (step) {
      case "identity_keys":
        return revokeKeys(identity, now)
      case "card":
        return Effect.succeed(
          only(sql`removed as (delete from card where identity_id = ${identity.id} and exists (select from fence))`),
        )
      case "tunnel":
        return Effect.succeed(
          only(sql`removed as (
            update tunnel_port set identity_id = null, freed_at = ${now}
            where identity_id = ${identity.id} and exists (select from fence))`),
        )
      // No platform credential exists to revoke unless a Connector was made.
      case "connectors":
        return Effect.succeed(only(sql`removed as (select 1)`))
      default:
        return Effect.andThen(
          removeBelongings(identity),
          Effect.map(makeUuidV7, (eventId) =>
            only(sql`
              leftover as (delete from event where identity_id = ${identity.id} and exists (select from fence)),
              -- Its own exports go with the Identity; one of the whole Org carries its mail too.
              archives as (delete from export where org_id = ${identity.orgId} and identity_id is null and exists (select from fence)),
              ${raiseForOrg(sql, "fence", {
                eventId,
                type: "identity.deleted",
                org: identity.orgId,
                data: { identity_id: identity.id, handle: identity.handle },
                at: now,
              })}`),
          ),
        )
    }
  }

  const only = (rows: StepRows["rows"]): StepRows => ({ rows, made: sql`true`, otherwise: "" })

  const removeBelongings = (identity: Owned) =>
    Effect.forEach(
      removals(unhurried, identity.id),
      (removal) => Effect.repeat(removal, { while: (rows) => (rows as ReadonlyArray<{ n: number }>)[0]!.n === batch }),
      { discard: true },
    )

  return { rowsOf }
})
