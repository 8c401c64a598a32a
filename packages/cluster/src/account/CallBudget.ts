/**
 * The budget of an Org's calls a minute, in the memory of its actor. Processes take it in portions, so that together
 * they never let through more than the quota of a window. A fresh actor (its former process died, or it was idle) gives
 * out only the share of the window that is still to come.
 */
import type { Policy } from "@svc/domain/account/OrgProtocol"
import { Timing } from "../Timing.ts"

const windowMillis = Timing.callWindowMillis

export type Quotas = { readonly [P in Policy]: number }

export const make = (quotas: Quotas, bornAt: number) => {
  const windows = new Map<Policy, { readonly start: number; left: number }>()

  const windowAt = (policy: Policy, now: number) => {
    const start = Math.floor(now / windowMillis) * windowMillis
    const present = windows.get(policy)
    if (present?.start === start) return present
    const share = bornAt <= start ? 1 : (start + windowMillis - bornAt) / windowMillis
    const fresh = { start, left: Math.max(1, Math.floor(quotas[policy] * share)) }
    windows.set(policy, fresh)
    return fresh
  }

  return {
    lease: (policy: Policy, want: number, now: number) => {
      const window = windowAt(policy, now)
      const granted = Math.min(want, window.left)
      window.left -= granted
      return { granted, left: window.left, ends_in: window.start + windowMillis - now }
    },
  }
}
