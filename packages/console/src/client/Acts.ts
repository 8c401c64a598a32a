/** Something a person does: it runs once at a time, and a repetition after a failure that may have happened is the same act. */
import { useCallback, useRef, useState } from "preact/hooks"
import { Refused } from "./Client.ts"

export interface Act<A extends ReadonlyArray<unknown>> {
  readonly run: (...values: A) => Promise<boolean>
  readonly busy: boolean
  readonly failure: Error | undefined
  readonly forget: () => void
}

/**
 * One control, one act: a second press while it runs does nothing, so that whoever shares one between two controls (the rows
 * of a list, say) loses a press without a word, and repeats the act of one row in the name of another.
 *
 * `work` gets the act's name first, for `call(…, { act })`. `run` answers whether it was done.
 */
export const useAct = <A extends ReadonlyArray<unknown>>(
  work: (act: string, ...values: A) => Promise<unknown>,
): Act<A> => {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Error>()
  const name = useRef<string>(undefined)
  const running = useRef(false)
  const latest = useRef(work)
  latest.current = work
  const run = useCallback(async (...values: A) => {
    if (running.current) return false
    running.current = true
    setBusy(true)
    setFailure(undefined)
    name.current ??= crypto.randomUUID()
    try {
      await latest.current(name.current, ...values)
      name.current = undefined
      return true
    } catch (cause) {
      // What was refused did not happen: the next attempt is another act.
      if (cause instanceof Refused && cause.problem.status < 500) name.current = undefined
      setFailure(cause instanceof Error ? cause : new Error(String(cause)))
      return false
    } finally {
      running.current = false
      setBusy(false)
    }
  }, [])
  return { run, busy, failure, forget: useCallback(() => setFailure(undefined), []) }
}

/**
 * Something that is chosen and chosen again, where the last word counts: what is chosen while one is being sent is sent after
 * it. A failure that something newer was chosen over is none.
 */
export const useChoice = <V>(work: (value: V) => Promise<unknown>): Act<[value: V]> => {
  const wanted = useRef<{ readonly value: V }>(undefined)
  const { run, ...act } = useAct(async () => {
    while (wanted.current !== undefined) {
      const { value } = wanted.current
      wanted.current = undefined
      try {
        await work(value)
      } catch (cause) {
        if (wanted.current === undefined) throw cause
      }
    }
  })
  const choose = (value: V) => {
    wanted.current = { value }
    return run()
  }
  return { ...act, run: choose }
}
