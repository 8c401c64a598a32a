/**
 * Keeps bulk data from costing whole collections. Every read of a socket is a buffer outside V8's heap that dies at once,
 * but V8 hears of too few small objects to collect the young ones: it waits until the buffers have filled its allowance
 * for outside memory and then marks the entire heap, many times a second. Collecting the young after so many bytes costs
 * about a millisecond and leaves no reason for that: bulk through a link is about twice as fast (`npm run bench -- tunnel`).
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const everyBytes = 4 * 1024 * 1024

let collect: ((options: { readonly type: "minor"; readonly execution: "sync" }) => void) | undefined
let since = 0

/** Counts bytes that came from a socket. */
export const passed = (bytes: number): void => {
  since += bytes
  if (since < everyBytes) return
  since = 0
  if (collect === undefined) {
    setFlagsFromString("--expose-gc")
    collect = runInNewContext("gc") as typeof collect
  }
  collect?.({ type: "minor", execution: "sync" })
}
