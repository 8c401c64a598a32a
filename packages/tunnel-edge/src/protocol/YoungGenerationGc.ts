/**
 * Keeps bulk data from costing whole collections. Every read of a socket is a buffer outside V8's heap that dies at once,
 * but V8 hears of too few small objects to collect the young ones: it waits until the buffers have filled its allowance
 * for outside memory and then marks the entire heap, many times a second. Collecting the young after so many bytes costs
 * about a millisecond and leaves no reason for that: bulk through a link is about twice as fast (`npm run bench -- tunnel`).
 *
 * Only bulk is worth it. Bytes that trickle bring objects enough for V8 to collect by itself, and a collection that is
 * forced upon an idle process, or upon one whose young objects are many and alive, stands still for longer than it saves.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

export const everyBytes = 4 * 1024 * 1024
/** So many bytes in less than this are bulk. */
export const withinMillis = 250
/** Young objects of more than this are left to V8, which collects them soon. */
export const youngBytes = 8 * 1024 * 1024

/**
 * What a chunk that a socket brought took outside of the heap, in bytes. Reads of TLS share a buffer of 64 KB, which the
 * first of them begins; where a read in the clear comes between them, the next one has another.
 */
export const outsideOf = ({ byteOffset, buffer }: Buffer): number => (byteOffset === 0 ? buffer.byteLength : 0)

interface Heap {
  /** What the young objects take, in bytes. */
  readonly young: () => number
  readonly collect: () => void
}

/** Answers what counts bytes outside of the heap. */
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
