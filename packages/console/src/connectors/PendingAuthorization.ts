/**
 * A pending OAuth authorization of this browser. A callback without a matching entry is never completed automatically: a
 * link could otherwise connect the reader's account to somebody else's Identity. The cookie only routes the callback to the
 * console and proves nothing.
 */
import type { PlatformName } from "@svc/domain/connectors/Connector"

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

/** Returns the authorization of this state; undefined if it is missing or expired. */
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
