/** The current time for relative dates: one signal for all pages, updated while the document is visible. */
import { signal } from "@preact/signals"

export const now = signal(Date.now())

if (typeof document !== "undefined") {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now()
  }, 10_000)
  document.addEventListener("visibilitychange", () => (now.value = Date.now()))
}
