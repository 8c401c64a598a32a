/** Ends the process when npm ends: a signal to npm reaches the shell that npm started, which may exit without forwarding it. */

/** Interval at which the parent process is checked. */
const checkMillis = 300

export const endWithParent = (): void => {
  if (process.env["npm_lifecycle_event"] === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, "SIGTERM")
  }, checkMillis)
  timer.unref()
}
