/**
 * Deleting an account, as a saga that survives a crash at any step: first a commit by which every credential is refused,
 * then the teardown of every Identity, then the Org with its data key. Handles stay taken.
 */
import { type By, system } from "@svc/domain/account/By"
import { NotFound, Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Effect } from "effect"
import { raiseForOrg } from "../events/Raise.ts"
import { ask } from "../actor/Ask.ts"
import { Identities } from "../identity/Identities.ts"
import { orUnavailable, Unhurried, Writes } from "../store/Database.ts"

const batch = 2_000
const lookAgain = "500 millis"

/** The commit that ends the account for its callers; repeating it changes nothing. */
export const begin = Effect.fn("AccountDeletion.begin")(function* (org: string, by: By = system) {
  const sql = yield* Writes
  const at = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* sql<{ requested_at: Date; identities: number }>`
    with asked as (
      update org set status = 'deleting', deletion_requested_at = ${at} where id = ${org} and status = 'active'
      returning id
    ),
    ${raiseForOrg({ sql, org, at, by }, "asked", "account.deletion_started", {})}
    select coalesce(deletion_requested_at, ${at}) as requested_at,
           (select count(*)::int from identity where org_id = ${org}) as identities
    from org where id = ${org}`
  return row === undefined ? yield* new NotFound({ detail: "There is no such account." }) : row
}, orUnavailable)

/** Goes on with a deletion that has begun, to its end. */
export const finish = Effect.fn("AccountDeletion.finish")(
  function* (org: string) {
    const sql = yield* Unhurried
    const actors = yield* Identities
    const left = sql<{ canonical: string }>`select canonical from identity where org_id = ${org}`
    for (let identities = yield* left; identities.length > 0; identities = yield* left) {
      // One that cannot go just now (its process moved, its teardown failed) is asked again.
      yield* Effect.forEach(
        identities,
        ({ canonical }) => Effect.ignore(ask(actors.of(canonical).Delete({ org_id: org, account: true }))),
        { concurrency: 8, discard: true },
      )
      yield* Effect.sleep(lookAgain)
    }
    yield* sql<{ n: number }>`
    with gone as (delete from event where seq in (select seq from event where org_id = ${org} limit ${batch}) returning 1)
    select count(*)::int as n from gone`.pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
    // An Identity whose creation was under way when the deletion began cannot come any more: creating one checks the Org.
    yield* sql`delete from org where id = ${org} and status = 'deleting' and not exists (select from identity where org_id = ${org})`
  },
  Effect.catchTag("SqlError", () => new Unavailable({ detail: "The database did not answer in time." })),
)

/** Whether the account is on its way out. */
export const isDeleting = (org: string) =>
  Effect.gen(function* () {
    const sql = yield* Writes
    const rows = yield* sql`select 1 from org where id = ${org} and status = 'deleting'`
    return rows.length > 0
  }).pipe(orUnavailable)
