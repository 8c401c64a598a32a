/** Something a person does: it runs once at a time, and a repetition after a failure that may have happened is the same act. */
import { useCallback, useRef, useState } from "preact/hooks"
import { Refused } from "./Client.ts"

export interface Act<A extends ReadonlyArray<unknown>> {
  readonly run: (...values: A) => Promise<boolean>
  readonly busy: boolean
  readonly failure: Error | undefined
  readonly forget: () => void
}

/** `work` gets the act's name first, for `call(…, { act })`. `run` answers whether it was done. */
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
