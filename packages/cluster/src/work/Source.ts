/**
 * The interface of work sources: the work that an actor does between messages, such as its saga, the delivery queue or exports.
 * A capability defines its source in its folder and adds it to the list of its actor. The loop that drives sources (`Worker`) and
 * the scan for abandoned work (`Overdue`) know no source by name.
 */
import type { Moved } from "@svc/domain/actor/Protocol"
import type { Unavailable } from "@svc/domain/problems/Problem"
import type { Effect, Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Ownership } from "../actor/Ownership.ts"
import type { Sql } from "../store/Database.ts"

/** A source of one activation of an actor. */
export interface Running<State> {
  /**
   * Does or starts due work within the limits of the source; returns whether there was any. Work that outlives the call counts as
   * busy. It runs `changed` when it ends, or `ours` if its end can only make work of this source due, so that no other source is
   * checked.
   */
  readonly dispatch: (
    state: State,
    changed: Effect.Effect<void>,
    ours: Effect.Effect<void>,
  ) => Effect.Effect<boolean, Moved | Unavailable | SqlError.SqlError>
  /**
   * Whether the source rarely has due work and `dispatch` queries the store. `nextDue` is then called first, unless the source
   * itself has requested a check.
   */
  readonly isSeldomDue?: boolean
  /** Returns when work is next due, by the same condition as {@link dispatch}, or null. */
  readonly nextDue: (state: State) => Effect.Effect<Date | null, SqlError.SqlError>
  /** Whether started work is in flight. */
  readonly isBusy: () => boolean
  /** Waits a limited time for work in flight, when the shard moves or the process shuts down. */
  readonly settle: Effect.Effect<void>
}

/** The part of a source that {@link Overdue} uses. */
export interface Backlog {
  readonly name: string
  /** Returns the ids of entities with rows that were due before `late` and thus are abandoned, longest overdue first. */
  readonly overdue: (sql: Sql, late: Date, atMost: number) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
}

/** The ownership for a source that writes but does not change the state of the entity. */
export type Writing<State> = Pick<Ownership<State | undefined>, "write">

/** A work source. `Owner` is the part of the ownership that it uses; a source that changes the state needs all of it. */
export interface Source<State, Needs = never, Owner = Writing<State>> extends Backlog {
  /** Called once per activation. */
  readonly make: (ownership: Owner) => Effect.Effect<Running<State>, never, Needs | Scope.Scope>
}

/** The services that the sources of a list need together. */
export type NeedsOf<S> = S extends Source<infer _State, infer Needs, infer _Owner> ? Needs : never
