/** Shows on a terminal that long work continues: a line on standard error that disappears when the work ends. */
import { Effect } from "effect"
import { terminalText } from "./Printing.ts"

/** Work that ends within this time shows nothing. */
const everyMillis = 1000

const erased = "\r\u001b[K"

/** Runs the work. Output that goes to a file or another program contains no progress. */
export const withProgress = <A, E, R>(what: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      if (process.stderr.isTTY !== true) return undefined
      let seconds = 0
      return setInterval(() => {
        seconds += everyMillis / 1000
        process.stderr.write(`${erased}${terminalText(what).slice(0, 60)} ... ${seconds} s`)
      }, everyMillis)
    }),
    () => work,
    (timer) =>
      Effect.sync(() => {
        if (timer === undefined) return
        clearInterval(timer)
        process.stderr.write(erased)
      }),
  )
