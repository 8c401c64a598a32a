/** What no first look at a page needs: it waits until the browser has nothing better to do. */
import { useEffect, useState } from "preact/hooks"

/** Milliseconds after which it runs all the same, on a browser that is never idle. */
const latest = 1500
/** Milliseconds for a browser that cannot tell when it is idle. */
const soon = 300

/** Answers how to have it not run. */
export const later = (run: () => void): (() => void) => {
  if (typeof requestIdleCallback === "function") {
    const id = requestIdleCallback(run, { timeout: latest })
    return () => cancelIdleCallback(id)
  }
  const id = setTimeout(run, soon)
  return () => clearTimeout(id)
}

/** Whether it is later. */
export const useLater = (): boolean => {
  const [isLater, setLater] = useState(false)
  useEffect(() => later(() => setLater(true)), [])
  return isLater
}
