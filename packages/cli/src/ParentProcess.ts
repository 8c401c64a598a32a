/**
 * Under npm the process ends with it: a signal to npm reaches npm's shell, which may die without telling us.
 */
const lookMillis = 300

export const endWithParent = (): void => {
  if (process.env["npm_lifecycle_event"] === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, "SIGTERM")
  }, lookMillis)
  timer.unref()
}
