/**
 * One statement for what many fibers want at the same time. A batch leaves as soon as none is under way, or few enough
 * ({@link BatchLimits}), and takes all that has gathered meanwhile, so a lone call waits for nothing and a crowd shares its round trips.
 * (`RequestResolver` gathers for a fixed delay or a tick; neither follows the load.)
 */
import { Effect, Exit, FiberSet, type Scope } from "effect"
import { Timing } from "../Timing.ts"

export interface BatchLimits<Item = unknown, E = never> {
  /** Statements under way. */
  readonly atOnce: number
  /** Calls in one statement. */
  readonly most: number
  /** What the calls of one statement may weigh together; one that weighs more goes alone. */
  readonly heaviest?: { readonly weight: number; readonly of: (item: Item) => number }
  /**
   * A statement leaves beside another only with so many calls, or when the first of them has waited so long: two of half the
   * calls cost more than one of all, and one that hangs must not hold up the others.
   */
  readonly beside?: { readonly least: number; readonly millis: number }
  /**
   * Whether what waits leaves before the callers of the last batch go on. For an actor, whose statement may be one of many
   * actors': all of them hand on what waits, and only then, in a microtask, is what was stored answered, so that the server
   * has work meanwhile. Otherwise callers go on first, and what they ask for at once goes along.
   */
  readonly nextFirst?: boolean
  /** Calls of the same name are never in one statement. */
  readonly apart?: (item: Item) => string
  /**
   * How long a call waits, by the machine's own clock (as `Deadline.within`), and what it gets then. It costs a timer,
   * where a deadline around the call costs a fiber of its own.
   */
  readonly deadline?: { readonly millis: number; readonly late: () => Effect.Effect<never, E> }
}

/** What most want: a crowd has a second statement, and so has whoever would wait behind one that hangs. */
export const usual = { atOnce: 2, beside: { least: 16, millis: Timing.besideMillis }, most: 200 }

/** `run` answers one result per item, in their order; when it fails, all its callers fail. */
export const make = <Item, Result, E, E2 = never>(
  run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E>,
  limits: BatchLimits<Item, E2> = usual,
): Effect.Effect<(item: Item) => Effect.Effect<Result, E | E2>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = yield* FiberSet.makeRuntime()
    const waiting: Array<{ readonly item: Item; readonly resume: (result: Effect.Effect<Result, E | E2>) => void }> = []
    let underWay = 0
    /** Runs while calls wait for more of them. */
    let patience: NodeJS.Timeout | undefined

    /** Whether what waits stays for now, beside a statement that is under way. */
    const stays = () => {
      const { beside } = limits
      if (beside === undefined || underWay === 0 || waiting.length >= beside.least) return false
      patience ??= setTimeout(leave, beside.millis)
      return true
    }

    /** How many of those that wait go along, at least one. */
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
        // What the same turn of the event loop still adds goes along.
        if (waiting.length === 1 || waiting.length === limits.beside?.least) queueMicrotask(pump)
        return Effect.sync(withdraw)
      })
  })

/** Rows that carry the place (`asked`, from 1) of the item they answer, as one result per item. */
export const inOrder =
  (items: ReadonlyArray<unknown>) =>
  <Row extends { readonly asked: number }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row | undefined> => {
    const results: Array<Row | undefined> = items.map(() => undefined)
    for (const row of rows) results[row.asked - 1] = row
    return results
  }
