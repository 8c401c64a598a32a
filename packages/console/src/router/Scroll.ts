/** The scroll position of each entry of the browser's history, which Back and Forward restore once the page has its height. */

const storeKey = "svc-scroll"
/** Number of entries that are remembered. */
const keptAtMost = 50
/** Time in milliseconds in which a page loads what it showed before. */
const loadingMillis = 4_000

const read = (): Record<string, number> => {
  try {
    return JSON.parse(sessionStorage.getItem(storeKey) ?? "{}") as Record<string, number>
  } catch {
    return {}
  }
}

const keyOf = (state: unknown): string | undefined =>
  typeof state === "object" && state !== null && "key" in state ? String(state.key) : undefined

/** Returns the state of a new entry of the history. */
export const newEntry = () => ({ key: crypto.randomUUID() })

/** The entry that is shown. The browser changes `history.state` before it reports that it went back. */
let shown: string | undefined
let wanted: number | undefined

/** Stores the position of the entry that is left. */
export const leaveEntry = () => {
  if (shown === undefined) return
  const { [shown]: _, ...others } = read()
  const kept = Object.entries(others).slice(-keptAtMost)
  try {
    sessionStorage.setItem(storeKey, JSON.stringify(Object.fromEntries([...kept, [shown, Math.round(scrollY)]])))
  } catch {
    // Storage is not available: positions are lost.
  }
}

/** Called after the history has changed. An entry that is shown again gets its position back. */
export const enterEntry = (isAgain: boolean) => {
  // An entry that was not made here, such as the first one.
  if (keyOf(history.state) === undefined) history.replaceState(newEntry(), "")
  shown = keyOf(history.state)
  wanted = isAgain && shown !== undefined ? read()[shown] : undefined
}

/** Scrolls a page that was just rendered to its position, again while it grows, until the reader does something. */
export const scrollPage = () => {
  const top = wanted ?? 0
  wanted = undefined
  scrollTo(0, top)
  if (top === 0) return
  const inputs = ["wheel", "touchstart", "keydown", "pointerdown"]
  const show = () => {
    scrollTo(0, top)
    if (Math.abs(scrollY - top) < 2 && document.documentElement.scrollHeight - innerHeight > top) stop()
  }
  const observer = new ResizeObserver(show)
  const timer = setTimeout(() => stop(), loadingMillis)
  const stop = () => {
    observer.disconnect()
    clearTimeout(timer)
    for (const type of inputs) removeEventListener(type, stop, true)
  }
  for (const type of inputs) addEventListener(type, stop, { capture: true, passive: true })
  observer.observe(document.body)
}
