/** The path to open after sign-in, stored for all tabs, because the sign-in link opens a new one. */
const key = "svc-return"
const keptMillis = 15 * 60_000

export const keepReturn = (path: string) => {
  try {
    if (path !== "/") localStorage.setItem(key, JSON.stringify({ path, at: Date.now() }))
  } catch {
    // Storage is not available: sign-in leads to Home.
  }
}

/** Returns the stored path once; undefined if it is missing or expired. */
export const takeReturn = (): string | undefined => {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "null") as { path: string; at: number } | null
    localStorage.removeItem(key)
    return kept !== null && Date.now() - kept.at < keptMillis && kept.path.startsWith("/") ? kept.path : undefined
  } catch {
    return undefined
  }
}
