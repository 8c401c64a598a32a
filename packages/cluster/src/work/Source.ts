/**
 * What an actor does between messages comes from sources: the saga, the delivery queue, exports. A capability that has
 * work of its own (an outbox, a poll) defines one in its folder and adds it to its actor's list; the loop that drives
 * them (`Worker`) and the scan that finds what was left behind (`Overdue`) know no source by name.
 */
import type { Moved } from "@svc/domain/actor/Moved"
import type { Unavailable } from "@svc/domain/problems/Problem"
import type { Effect, Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Ownership } from "../actor/Ownership.ts"
import type { Sql } from "../store/Database.ts"

/** A source as one activation of an actor runs it. */
export interface Running<State> {
  /**
   * Does or starts what is due and has a place; answers whether there was any. What goes on beyond the call counts as
   * busy and runs `changed` when something ends, or `ours` where its end can have made nothing due but of this source:
   * then no other is asked.
   */
  readonly dispatch: (
    state: State,
    changed: Effect.Effect<void>,
    ours: Effect.Effect<void>,
  ) => Effect.Effect<boolean, Moved | Unavailable | SqlError.SqlError>
  /**
   * It mostly has nothing due, and to dispatch it asks the store: where it is looked at for no reason of its own, it is
   * asked first when it is next due.
   */
  readonly isSeldomDue?: boolean
  /** When the source is next due, by the same condition as {@link dispatch}; null when nothing waits. */
  readonly nextDue: (state: State) => Effect.Effect<Date | null, SqlError.SqlError>
  /** Whether something that was started has not ended. */
  readonly isBusy: () => boolean
  /** The shard or the process leaves: waits a moment for what is under way. */
  readonly settle: Effect.Effect<void>
}

/** What {@link Overdue} needs of a source. */
export interface Backlog {
  readonly name: string
  /** Ids of entities with rows that were due before `late`, so that nobody drives them; the longest due first. */
  readonly overdue: (sql: Sql, late: Date, atMost: number) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
}

/** A source that writes, and makes no other state of the entity. */
export type Writing<State> = Pick<Ownership<State | undefined>, "write">

/** `Owner` is what the source needs of the actor's ownership; one that makes another state needs all of it. */
export interface Source<State, Needs = never, Owner = Writing<State>> extends Backlog {
  /** Made once an activation. */
  readonly make: (ownership: Owner) => Effect.Effect<Running<State>, never, Needs | Scope.Scope>
}

/** What the sources of a list need together. */
export type NeedsOf<S> = S extends Source<infer _State, infer Needs, infer _Owner> ? Needs : never
