/**
 * Commands that a person gives by a control. A command runs at most once at a time, and keeps its idempotency key until its
 * outcome is known, so that repeating it after a lost response has no second effect.
 */
import { useCallback, useRef, useState } from "preact/hooks"
import { Refused } from "./Client.ts"

export interface Command<A extends ReadonlyArray<unknown>> {
  /** Resolves to whether the command succeeded. */
  readonly run: (...values: A) => Promise<boolean>
  readonly busy: boolean
  readonly failure: Error | undefined
  /** Clears the failure. */
  readonly forget: () => void
}

/**
 * Returns a command for one control. Calls while it runs are ignored, so that each row of a list needs its own command.
 * `work` receives the idempotency key first, for `call(…, { key })`.
 */
export const useCommand = <A extends ReadonlyArray<unknown>>(
  work: (key: string, ...values: A) => Promise<unknown>,
): Command<A> => {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Error>()
  const key = useRef<string>(undefined)
  const running = useRef(false)
  const latest = useRef(work)
  latest.current = work
  const run = useCallback(async (...values: A) => {
    if (running.current) return false
    running.current = true
    setBusy(true)
    setFailure(undefined)
    key.current ??= crypto.randomUUID()
    try {
      await latest.current(key.current, ...values)
      key.current = undefined
      return true
    } catch (cause) {
      // A rejected request had no effect, so the next attempt is a new command.
      if (cause instanceof Refused && cause.problem.status < 500) key.current = undefined
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
 * Returns a command for a setting that may change again while it is saved: the last value wins. A failure is only reported
 * if no newer value was chosen.
 */
export const useChoice = <V>(work: (value: V) => Promise<unknown>): Command<[value: V]> => {
  const pending = useRef<{ readonly value: V }>(undefined)
  const { run, ...command } = useCommand(async () => {
    while (pending.current !== undefined) {
      const { value } = pending.current
      pending.current = undefined
      try {
        await work(value)
      } catch (cause) {
        if (pending.current === undefined) throw cause
      }
    }
  })
  const choose = (value: V) => {
    pending.current = { value }
    return run()
  }
  return { ...command, run: choose }
}
