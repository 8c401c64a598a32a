/** Where somebody wanted to go before they had to sign in; the mailed link opens another tab, so it is kept for all. */
const key = "svc-return"
const keptMillis = 15 * 60_000

export const keepReturn = (path: string) => {
  try {
    if (path !== "/") localStorage.setItem(key, JSON.stringify({ path, at: Date.now() }))
  } catch {
    // Not kept: the overview, then.
  }
}

/** Once; undefined where there is none or it is old. */
export const takeReturn = (): string | undefined => {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "null") as { path: string; at: number } | null
    localStorage.removeItem(key)
    return kept !== null && Date.now() - kept.at < keptMillis && kept.path.startsWith("/") ? kept.path : undefined
  } catch {
    return undefined
  }
}
