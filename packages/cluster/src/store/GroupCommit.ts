/**
 * Group commit: writes that wait at the same time share one statement and one commit. A write that makes the statement fail,
 * for example by a name that is taken, fails alone.
 */
import { Effect, Exit, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import * as Batcher from "./Batcher.ts"
import { isTransient, type Sql } from "./Database.ts"

type Outcomes<Result, E> = Effect.Effect<ReadonlyArray<Exit.Exit<Result, E>>, SqlError.SqlError>

type GroupCommit<Item, Result, E> = Effect.Effect<(item: Item) => Effect.Effect<Result, E>, never, Scope.Scope>

/** Whether a statement waits for rows that another statement has locked, or skips the writes that need them. */
export type Patience = "waits" | "skips"

/**
 * Runs one statement for all items. If it fails because of what is in it, runs it for each item alone. After a transient failure
 * all items fail, because it is unknown what was committed.
 */
const storeAll = <Item, Result, E>(
  store: (items: ReadonlyArray<Item>) => Outcomes<Result, E>,
  items: ReadonlyArray<Item>,
): Effect.Effect<ReadonlyArray<Exit.Exit<Result, E | SqlError.SqlError>>> =>
  Effect.catch(store(items), (error): Effect.Effect<ReadonlyArray<Exit.Exit<Result, E | SqlError.SqlError>>> =>
    items.length === 1 || isTransient(error)
      ? Effect.succeed(items.map(() => Exit.fail(error)))
      : Effect.map(
          Effect.forEach(items, (item) => storeAll(store, [item])),
          (outcomes) => outcomes.flat(),
        ),
  )

/** Returns a function that stores an item together with the others that wait. `store` returns one outcome per item, in order. */
export const make = <Item, Result, E = never, E2 = never>(
  store: (items: ReadonlyArray<Item>) => Outcomes<Result, E>,
  limits: Batcher.BatchLimits<Item, E2>,
): GroupCommit<Item, Result, E | E2 | SqlError.SqlError> =>
  Effect.map(
    Batcher.make((items: ReadonlyArray<Item>) => storeAll(store, items), limits),
    (share) => (item) => Effect.flatten(share(item)),
  )

/**
 * {@link make} for writes that lock rows which other statements also lock. The shared statement skips such rows, so that it waits
 * for nobody and no two statements wait for each other. A skipped item is then stored alone, waiting for its row.
 *
 * The wait happens in `lock`, a separate statement before the one that stores. A statement that waits for a row and then
 * changes it visits the row twice, the second time through the version in its snapshot. PostgreSQL queues waiters by row
 * version, so two such statements and a change by a third one could deadlock.
 */
export const makeSkipping = <Item, Result, E = never, E2 = never>(
  store: (items: ReadonlyArray<Item>, patience: Patience) => Outcomes<Result, E>,
  isSkipped: (result: Result) => boolean,
  { sql, lock }: { readonly sql: Sql; readonly lock: (item: Item) => Effect.Effect<unknown, SqlError.SqlError> },
  limits: Batcher.BatchLimits<Item, E2>,
): GroupCommit<Item, Result, E | E2 | SqlError.SqlError> =>
  Effect.gen(function* () {
    const share = yield* make((items: ReadonlyArray<Item>) => store(items, "skips"), limits)
    const alone = yield* make(
      (items: ReadonlyArray<Item>) => sql.withTransaction(Effect.andThen(lock(items[0]!), store(items, "waits"))),
      { atOnce: 2, most: 1 },
    )
    return (item) => Effect.flatMap(share(item), (result) => (isSkipped(result) ? alone(item) : Effect.succeed(result)))
  })
