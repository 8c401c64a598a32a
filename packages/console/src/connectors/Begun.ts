/**
 * An authorization that this browser began: what is asked for comes back with the platform's answer, which knows nothing
 * of it. A return that was not begun here is never ended here by itself: otherwise a link could connect its reader's
 * account to a stranger's wish. The cookie only leads the return to this console; it is no proof of anything.
 */
import type { PlatformName } from "@svc/domain/connectors/PlatformName"

export interface Begun {
  readonly state: string
  readonly handle: string
  readonly platform: PlatformName
  readonly apply_disclosure: boolean
}

const key = "svc-connecting"
const keptSeconds = 15 * 60
const cookie = (state: string, seconds: number) =>
  (document.cookie = `svc_connecting=${encodeURIComponent(state)}; Path=/connectors; Max-Age=${seconds}; SameSite=Lax`)

export const begin = (begun: Begun, authorizationUrl: string) => {
  const to = new URL(authorizationUrl)
  if (to.protocol !== "https:" && to.protocol !== "http:") throw new Error("no address of a platform")
  localStorage.setItem(key, JSON.stringify({ ...begun, at: Date.now() }))
  cookie(begun.state, keptSeconds)
  location.assign(to)
}

/** What was begun under this state and is not older than the platform may take. */
export const begunAs = (state: string | null): Begun | undefined => {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "null") as (Begun & { readonly at: number }) | null
    return kept !== null && kept.state === state && Date.now() - kept.at < keptSeconds * 1000 ? kept : undefined
  } catch {
    return undefined
  }
}

export const forget = () => {
  localStorage.removeItem(key)
  cookie("", 0)
}
