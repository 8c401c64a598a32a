/** Timers that only a test fires, so that a limit of an hour can be tested in a moment. */
import { vi } from "vitest"

/** Holds the timers of at least this length that code of `part` starts. Other timers run as usual. */
export const holdTimers = (part: string, atLeastMillis: number) => {
  const held = new Map<object, { readonly millis: number; readonly run: () => void }>()
  const { setTimeout, clearTimeout } = globalThis
  const set = vi.spyOn(globalThis, "setTimeout").mockImplementation(((
    run: () => void,
    millis?: number,
    ...rest: []
  ) => {
    if (millis === undefined || millis < atLeastMillis || new Error().stack?.includes(part) !== true) {
      return setTimeout(run, millis, ...rest)
    }
    const handle = { unref: () => handle, ref: () => handle }
    held.set(handle, { millis, run })
    return handle
  }) as typeof globalThis.setTimeout)
  const clear = vi.spyOn(globalThis, "clearTimeout").mockImplementation((handle) => {
    if (typeof handle !== "object" || !held.delete(handle)) clearTimeout(handle)
  })
  return {
    /** Returns the lengths of the timers that run, shortest first. */
    running: () => [...held.values()].map(({ millis }) => millis).sort((a, b) => a - b),
    /** Fires the timers of this length. */
    fire: (length: number) => {
      for (const [handle, { millis, run }] of held) if (millis === length && held.delete(handle)) run()
    },
    restore: () => {
      set.mockRestore()
      clear.mockRestore()
    },
  }
}
