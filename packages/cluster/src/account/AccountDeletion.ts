/**
 * Deletes an account as a saga that survives a crash at any step: first a commit after which every credential is
 * rejected, then the teardown of every Identity, then the Org with its data key. Handles stay taken.
 */
import { system } from "@svc/domain/account/Initiator"
import { NotFound } from "@svc/domain/problems/Problem"
import { Clock, Effect } from "effect"
import { ask, onBehalfOf } from "../actor/Ask.ts"
import type { Ownership } from "../actor/Ownership.ts"
import { commit, type Fenced } from "../actor/Write.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { Identities } from "../actor/Identities.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as SingleRun from "../work/SingleRun.ts"
import type { Source } from "../work/Source.ts"
import type { OrgState, OwnedOrg } from "./OrgState.ts"

const batch = 2_000

/** Commits the start of the deletion, after which callers are rejected. Repeating it changes nothing. */
export const begin = Effect.fnUntraced(function* (write: Fenced, org: OrgState) {
  if (org === undefined) return yield* new NotFound({ detail: "The account does not exist." })
  const { sql, at, by } = write
  const value = yield* commit<{ requested_at: Date; identities: number }>(
    write,
    sql`
    requested as (
      update org set status = 'deleting', deletion_requested_at = ${at}
      where id = ${org.id} and status = 'active' and exists (select from fence)
      returning id
    ),
    ${raiseForOrg({ sql, org: org.id, at, by }, "requested", "account.deletion_started", {})}`,
    {
      columns: sql`
        coalesce((select deletion_requested_at from org where id = ${org.id}), ${at}) as requested_at,
        (select count(*)::int from identity where org_id = ${org.id}) as identities`,
    },
  )
  const state: OrgState = { ...org, status: "deleting" }
  return { value, state }
})

type Needs = Unhurried | Identities

/** Completes a deletion that has started. */
export const source: Source<OwnedOrg, Needs, Ownership<OwnedOrg | undefined>> = {
  name: "account deletion",

  overdue: (sql, _late, atMost) =>
    Effect.map(
      sql<{ id: string }>`select id from org where status = 'deleting' order by deletion_requested_at limit ${atMost}`,
      (rows) => rows.map(({ id }) => id),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Unhurried
    const actors = yield* Identities
    const one = yield* SingleRun.make

    /** Deletes the Org's audit records. No other code may delete from the audit log. */
    const removeRecords = Effect.fnUntraced(function* (org: string) {
      for (const table of ["audit", "audit_seal"]) {
        yield* sql
          .withTransaction(
            Effect.andThen(
              sql`select set_config('svc.audit', 'removal', true)`,
              sql.unsafe<{ n: number }>(
                `with gone as (delete from ${table} where (tableoid, ctid) in (
                   select tableoid, ctid from ${table} where org_id = $1::uuid limit ${batch}) returning 1)
                 select count(*)::int as n from gone`,
                [org],
              ),
            ),
          )
          .pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
      }
    })

    const finish = Effect.fn("AccountDeletion.finish")(function* (org: string) {
      const left = sql<{ canonical: string }>`select canonical from identity where org_id = ${org}`
      for (let identities = yield* left; identities.length > 0; identities = yield* left) {
        // An Identity that cannot be deleted now (its process moved, its teardown failed) is retried.
        yield* Effect.forEach(
          identities,
          ({ canonical }) =>
            Effect.ignore(ask(actors.of(canonical).Delete({ org_id: org, account: true }, onBehalfOf(system)))),
          { concurrency: 8, discard: true },
        )
        yield* Effect.sleep(Timing.deletionLook)
      }
      yield* sql<{ n: number }>`
        with gone as (delete from event where seq in (select seq from event where org_id = ${org} limit ${batch}) returning 1)
        select count(*)::int as n from gone`.pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
      yield* removeRecords(org)
      // No Identity can appear any more: creating one checks the Org.
      yield* ownership.change(system, (write) =>
        Effect.as(
          commit(
            write,
            write.sql`gone as (
              delete from org where id = ${org} and status = 'deleting' and exists (select from fence)
                and not exists (select from identity where org_id = ${org}))`,
          ),
          { value: undefined, state: undefined },
        ),
      )
      // Removes records of calls made in between; a deleted account gets no further ones.
      yield* removeRecords(org)
    })

    return {
      dispatch: Effect.fnUntraced(function* (org, changed) {
        if (org.status !== "deleting" || !one.isFree(yield* Clock.currentTimeMillis)) return false
        return yield* one.start(finish(org.id), "An account's deletion was cut short", changed)
      }),
      nextDue: (org) => one.from(org.status === "deleting" ? new Date(0) : null),
      isBusy: one.isBusy,
      settle: Effect.void,
    }
  }),
}
