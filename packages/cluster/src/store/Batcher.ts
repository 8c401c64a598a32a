/**
 * Runs one statement for the calls of many fibers. A batch starts as soon as few enough batches are in flight
 * ({@link BatchLimits}) and contains all calls that were queued meanwhile: a single call is never delayed, and concurrent calls
 * share a round trip. (`RequestResolver` waits for a fixed delay or a tick; neither follows the load.)
 */
import { Effect, Exit, FiberSet, type Scope } from "effect"
import { Timing } from "../Timing.ts"

export interface BatchLimits<Item = unknown, E = never> {
  /** The maximum number of statements in flight. */
  readonly atOnce: number
  /** The maximum number of calls in one statement. */
  readonly most: number
  /** The maximum total weight of the calls in one statement. A heavier call gets a separate statement. */
  readonly heaviest?: { readonly weight: number; readonly of: (item: Item) => number }
  /**
   * A statement starts beside another one only when `least` calls are queued, or when the first call has waited for `millis`: two
   * half-full statements cost more than a full one, but a statement that hangs must not block the other calls.
   */
  readonly beside?: { readonly least: number; readonly millis: number }
  /**
   * Starts the next batch before the callers of the last batch resume (in a microtask), so that the database has work
   * meanwhile. Without this option the callers resume first, and calls that they make immediately join the next batch.
   */
  readonly nextFirst?: boolean
  /** Returns a name for a call. Two calls of the same name are never in the same statement. */
  readonly apart?: (item: Item) => string
  /**
   * Fails a call with `late` after `millis` by the machine's clock (as in `Deadline.within`). It costs a timer, whereas a
   * deadline around the call costs a fiber.
   */
  readonly deadline?: { readonly millis: number; readonly late: () => Effect.Effect<never, E> }
}

/** The default limits: a second statement runs under load, or beside a statement that hangs. */
export const usual = { atOnce: 2, beside: { least: 16, millis: Timing.besideMillis }, most: 200 }

/** Returns a function that runs an item in a batch. `run` returns one result per item, in order; if it fails, all its callers fail. */
export const make = <Item, Result, E, E2 = never>(
  run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E>,
  limits: BatchLimits<Item, E2> = usual,
): Effect.Effect<(item: Item) => Effect.Effect<Result, E | E2>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = yield* FiberSet.makeRuntime()
    const waiting: Array<{ readonly item: Item; readonly resume: (result: Effect.Effect<Result, E | E2>) => void }> = []
    let underWay = 0
    /** Runs while queued calls wait for a fuller batch. */
    let patience: NodeJS.Timeout | undefined

    /** Whether the queued calls keep waiting, because a statement is in flight. */
    const stays = () => {
      const { beside } = limits
      if (beside === undefined || underWay === 0 || waiting.length >= beside.least) return false
      patience ??= setTimeout(leave, beside.millis)
      return true
    }

    /** Returns how many queued calls the next batch contains, at least one. */
    const next = () => {
      const { apart, heaviest, most } = limits
      if (heaviest === undefined && apart === undefined) return most
      let weight = 0
      const names = new Set<string>()
      const end = waiting.findIndex(({ item }, index) => {
        weight += heaviest?.of(item) ?? 0
        const isTooMuch = index > 0 && heaviest !== undefined && weight > heaviest.weight
        return isTooMuch || (apart !== undefined && names.size === names.add(apart(item)).size)
      })
      return Math.min(most, end < 0 ? waiting.length : end)
    }

    const leave = () => {
      clearTimeout(patience)
      patience = undefined
      if (waiting.length === 0) return
      const batch = waiting.splice(0, next())
      underWay++
      fork(
        Effect.map(Effect.exit(Effect.suspend(() => run(batch.map(({ item }) => item)))), (exit) => {
          underWay--
          const answer = () =>
            batch.forEach(({ resume }, index) => resume(Exit.map(exit, (results) => results[index]!)))
          if (limits.nextFirst === true) queueMicrotask(answer)
          else answer()
          pump()
        }),
      )
    }

    const pump = () => {
      while (underWay < limits.atOnce && waiting.length > 0 && !stays()) leave()
    }

    return (item) =>
      Effect.callback<Result, E | E2>((resume) => {
        const { deadline } = limits
        const entry = {
          item,
          resume: (result: Effect.Effect<Result, E | E2>) => {
            clearTimeout(timer)
            resume(result)
          },
        }
        const withdraw = () => {
          clearTimeout(timer)
          const index = waiting.indexOf(entry)
          if (index >= 0) waiting.splice(index, 1)
        }
        const timer =
          deadline === undefined
            ? undefined
            : setTimeout(() => {
                withdraw()
                resume(deadline.late())
              }, deadline.millis)
        waiting.push(entry)
        // Calls that the same turn of the event loop adds join the batch.
        if (waiting.length === 1 || waiting.length === limits.beside?.least) queueMicrotask(pump)
        return Effect.sync(withdraw)
      })
  })

/** Arranges rows as one result per item. A row has the position of its item, from 1, in `requested`. */
export const inOrder =
  (items: ReadonlyArray<unknown>) =>
  <Row extends { readonly requested: number }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row | undefined> => {
    const results: Array<Row | undefined> = items.map(() => undefined)
    for (const row of rows) results[row.requested - 1] = row
    return results
  }
