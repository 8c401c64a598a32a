/** The time, as pages that say "3 min ago" see it: one clock for all of them, which ticks while anybody looks. */
import { signal } from "@preact/signals"

export const now = signal(Date.now())

if (typeof document !== "undefined") {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now()
  }, 10_000)
  document.addEventListener("visibilitychange", () => (now.value = Date.now()))
}
