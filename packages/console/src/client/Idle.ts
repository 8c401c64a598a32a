/** Work that the first render does not need; it runs when the browser is idle. */
import { useEffect, useState } from "preact/hooks"

/** Maximum delay in milliseconds on a browser that is never idle. */
const latest = 1500
/** Delay in milliseconds on a browser without `requestIdleCallback`. */
const soon = 300

/** Returns a function that cancels it. */
export const later = (run: () => void): (() => void) => {
  if (typeof requestIdleCallback === "function") {
    const id = requestIdleCallback(run, { timeout: latest })
    return () => cancelIdleCallback(id)
  }
  const id = setTimeout(run, soon)
  return () => clearTimeout(id)
}

/** Returns whether the browser has been idle since the component was mounted. */
export const useLater = (): boolean => {
  const [isLater, setLater] = useState(false)
  useEffect(() => later(() => setLater(true)), [])
  return isLater
}
