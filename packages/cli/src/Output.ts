/**
 * What is written out and does not arrive: on a disk that is full, or by a reader that has gone. A command then ends like any
 * other that failed, in a sentence; the service goes on without its log, which is no reason to be down (`Logging`).
 */
import { isServing } from "./Logging.ts"

const reasons: Readonly<Record<string, string>> = {
  EPIPE: "nobody reads it any more",
  ENOSPC: "the disk is full",
}

export const guardOutput = (): void => {
  // There is nowhere left to say that nothing can be said.
  process.stderr.on("error", () => {})
  process.stdout.once("error", (error: NodeJS.ErrnoException) => {
    process.stdout.on("error", () => {})
    const why = reasons[error.code ?? ""] ?? error.message
    if (isServing()) {
      process.stderr.write(`svc: the log cannot be written, ${why}; the service goes on.\n`)
      return
    }
    process.stderr.write(`svc: the answer cannot be written out, ${why}. What was asked for may have been done.\n`)
    process.once("exit", () => (process.exitCode = 1))
    // Not by a signal: it would end what has nothing left to put away, with a code that says another thing.
    process.emit("SIGTERM", "SIGTERM")
  })
}
