/**
 * Handles failed writes to standard output, because the disk is full or the reader has gone. A command then fails with
 * a message; the service continues without its log (`Logging`).
 */
import { isServing } from "./Logging.ts"

const reasons: Readonly<Record<string, string>> = {
  EPIPE: "nobody reads it any more",
  ENOSPC: "the disk is full",
}

export const guardOutput = (): void => {
  // A failure of standard error cannot be reported anywhere.
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
    // Emits the event instead of sending the signal, which would end a process without handlers with a different exit
    // code.
    process.emit("SIGTERM", "SIGTERM")
  })
}
