/**
 * Runs young-generation collections during bulk transfers. Each socket read allocates a short-lived buffer outside of
 * V8's heap. V8 sees too few small objects to collect the young generation; it waits until the buffers fill its
 * external memory limit and then marks the entire heap, many times a second. A young collection after a fixed number of
 * bytes costs about a millisecond and avoids this: bulk transfers through a link are about twice as fast (`npm run
 * bench -- tunnel`).
 *
 * Only bulk transfers benefit. Slow traffic creates enough objects for V8 to collect by itself, and a forced collection
 * in an idle process, or in one with many live young objects, costs more than it saves.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

export const everyBytes = 4 * 1024 * 1024
/** `everyBytes` within less than this time count as a bulk transfer. */
export const withinMillis = 250
/** With more young objects than this, V8 collects them soon by itself. */
export const youngBytes = 8 * 1024 * 1024

/**
 * Returns the bytes outside of the heap that a chunk from a socket occupies. TLS reads share a buffer of 64 KB, and the
 * first read of each buffer allocates it.
 */
export const outsideOf = ({ byteOffset, buffer }: Buffer): number => (byteOffset === 0 ? buffer.byteLength : 0)

interface Heap {
  /** Returns the size of the young generation in bytes. */
  readonly young: () => number
  readonly collect: () => void
}

/** Returns a function that counts bytes outside of the heap and collects when needed. */
export const make = ({ young, collect }: Heap, now: () => number) => {
  let since = 0
  let from = now()
  return (bytes: number): void => {
    since += bytes
    if (since < everyBytes) return
    since = 0
    const at = now()
    const isBulk = at - from < withinMillis
    from = at
    if (isBulk && young() <= youngBytes) collect()
  }
}

let gc: ((options: { readonly type: "minor"; readonly execution: "sync" }) => void) | undefined

export const passed = make(
  {
    young: () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_used_size ?? 0,
    collect: () => {
      if (gc === undefined) {
        setFlagsFromString("--expose-gc")
        gc = runInNewContext("gc") as typeof gc
      }
      gc?.({ type: "minor", execution: "sync" })
    },
  },
  () => performance.now(),
)
