/**
 * Handles failed writes to standard output, because the disk is full or the reader has closed the pipe. A command then
 * fails with a message; the service continues without its log (`Logging`).
 */
import { isServing } from "./Logging.ts"

const reasons: Readonly<Record<string, string>> = {
  EPIPE: "the reader has closed it",
  ENOSPC: "the disk is full",
}

export const guardOutput = (): void => {
  // A failure of standard error cannot be reported anywhere.
  process.stderr.on("error", () => {})
  process.stdout.once("error", (error: NodeJS.ErrnoException) => {
    process.stdout.on("error", () => {})
    const why = reasons[error.code ?? ""] ?? error.message
    if (isServing()) {
      process.stderr.write(`svc: the log cannot be written: ${why}. The service continues without it.\n`)
      return
    }
    process.stderr.write(`svc: the output cannot be written: ${why}. The command may have taken effect.\n`)
    process.once("exit", () => (process.exitCode = 1))
    // Emits the event instead of sending the signal, which would end a process without handlers with a different exit
    // code.
    process.emit("SIGTERM", "SIGTERM")
  })
}
