/**
 * The permit of an actor's process to send: the content of a message, or a call to a platform. A permit is a row that is
 * granted under the actor's fence, only while sending is allowed, with a deadline in the store's time. The process measures
 * the deadline with its own monotonic clock, from before the granting statement was sent, so that its permit never lasts
 * longer than the row. The clock is read in the turn of the event loop in which the data is written, so that a process
 * that was suspended in between notices that its permit has expired.
 *
 * A stop is committed first, so that no permit is granted after it. Then it ends the permit in its own process's memory,
 * and waits until the permits of former owners of the entity have expired ({@link formerEnded}), because a suspended former
 * owner does not know about the stop.
 */
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { pause } from "../store/Deadline.ts"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { type Claim, commit, type Fenced, type FenceLost } from "./Write.ts"

export interface Permit {
  /** Returns whether the permit is valid now. The result only holds within the same turn of the event loop. */
  readonly holds: () => boolean
  /** Returns when the permit expires, on the clock of `performance.now()`. */
  readonly until: () => number
  /** Returns whether the permit expires soon enough that the next statement should renew it. */
  readonly isShort: () => boolean
  /** Runs a statement of the owner with {@link permitted} in it. `isGranted` says whether its result is a grant. */
  readonly renewedBy: <A, E, R>(
    owner: Pick<Fenced, "claim">,
    statement: Effect.Effect<A, E, R>,
    isGranted: (result: A) => boolean,
  ) => Effect.Effect<A, E, R>
  /** Ends the permit and ignores grants of statements in flight. */
  readonly end: () => void
  /** Returns the owner of the valid permit, so that it can be handed back ({@link handBack}). */
  readonly held: () => Claim | undefined
}

/** Creates a permit that has not been granted yet. */
export const make = (): Permit => {
  let until = 0
  let ends = 0
  let claim: Claim | undefined
  const holds = () => performance.now() < until
  return {
    holds,
    held: () => (holds() ? claim : undefined),
    until: () => until,
    isShort: () => performance.now() > until - Timing.permitMillis / 2,
    renewedBy: (owner, statement, isGranted) =>
      Effect.suspend(() => {
        const sentAt = performance.now()
        const before = ends
        return Effect.tap(statement, (result) =>
          Effect.sync(() => {
            if (before !== ends || !isGranted(result)) return
            until = Math.max(until, sentAt + Timing.permitMillis)
            claim = owner.claim
          }),
        )
      }),
    end: () => {
      ends++
      until = 0
    },
  }
}

/**
 * CTE `permitted`: grants or renews the permits of the actors in `owners`, a query of `kind`, `id` and `epoch` that has a
 * row only for actors whose fence held. Rows are locked in their order, so that two statements never wait for each other.
 */
export const permitted = (sql: Sql, owners: Statement.Fragment): Statement.Fragment => sql`
  permitted as (
    insert into actor_permit (kind, id, epoch, until)
    select distinct kind, id, epoch, now() + make_interval(secs => ${Timing.permitMillis / 1000}) from (${owners}) owner
    order by kind, id
    on conflict (kind, id, epoch) do update set until = excluded.until
    returning id
  )`

/** Returns the owner that makes a write, for {@link permitted}. */
export const owner = ({ sql, claim }: Pick<Fenced, "sql" | "claim">): Statement.Fragment =>
  sql`select ${claim.kind}::text as kind, ${claim.id}::text as id, ${claim.epoch}::int as epoch from fence`

/** Gives back the permit of an owner that leaves, so that the next owner need not wait until it expires. */
export const handBack = (sql: Sql, { kind, id, epoch }: Claim): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(sql`delete from actor_permit where kind = ${kind} and id = ${id} and epoch = ${epoch}`)

/** Waits until no former owner of the entity holds a permit. Fails with `FenceLost` where the writer is not the owner. */
export const formerEnded = (write: Fenced): Effect.Effect<void, SqlError.SqlError | FenceLost> => {
  const { sql, claim, fence, due } = write
  const left = commit<{ left: number | null }>(
    { sql, fence, due },
    sql`former as (
      select extract(epoch from max(until) - now())::float8 * 1000 as millis from fence, actor_permit p
      where p.kind = ${claim.kind} and p.id = ${claim.id} and p.epoch <> ${claim.epoch} and p.until > now()
    )`,
    { columns: sql`(select millis from former) as left` },
  )
  return Effect.gen(function* () {
    for (let found = yield* left; found.left !== null; found = yield* left) {
      yield* pause(Math.min(found.left + 1, Timing.permitLookMillis))
    }
  })
}
