/**
 * Limits of authenticated calls per Org, exact over all processes: the Org's actor owns the budget of the window, and
 * this process leases shares of it (`account/CallBudget`). The rest of a share is lost when the window ends, so a call may
 * be rejected early by at most the shares that other processes have leased. The quota is never exceeded.
 */
import type { Policy } from "@svc/domain/account/OrgProtocol"
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import type { Quotas } from "../account/CallBudget.ts"
import { Orgs } from "../account/Orgs.ts"
import { ask } from "../actor/Ask.ts"
import { Timing } from "../Timing.ts"
import { overLimit } from "../observe/RateLimit.ts"

/** The remaining calls after an accepted one; `remaining` is what this process knows. */
interface OrgLeft {
  readonly policy: Policy
  readonly quota: number
  readonly remaining: number
  readonly resetSeconds: number
}

interface Portion {
  window: number
  mine: number
  left: number
  /** Calls that wait for the actor share its reply. */
  readonly lock: Semaphore.Semaphore
}

const portionsAtMost = 50_000

const make = (quotas: Quotas) =>
  Effect.gen(function* () {
    const orgs = yield* Orgs
    const portions = new Map<string, Portion>()

    const portionOf = (key: string): Portion => {
      const present = portions.get(key)
      if (present !== undefined) return present
      if (portions.size >= portionsAtMost) portions.clear()
      const fresh = { window: -1, mine: 0, left: 0, lock: Semaphore.makeUnsafe(1) }
      portions.set(key, fresh)
      return fresh
    }

    /** A share is a twentieth of the quota, so that a few processes lose little. */
    const want = (policy: Policy) => Math.max(1, Math.floor(quotas[policy] / 20))

    const spend = (portion: Portion, window: number) => {
      if (portion.window !== window || portion.mine === 0) return false
      portion.mine--
      return true
    }

    const leftOf = (policy: Policy, portion: Portion, now: number): OrgLeft => ({
      policy,
      quota: quotas[policy],
      remaining: portion.mine + portion.left,
      resetSeconds: Math.ceil((Timing.callWindowMillis - (now % Timing.callWindowMillis)) / 1000),
    })

    /** Leases a share from the actor, unless another call just did or the window is used up. */
    const fetchPortion = (org: string, policy: Policy, portion: Portion, now: number) =>
      portion.lock.withPermits(1)(
        Effect.gen(function* () {
          const window = Math.floor(now / Timing.callWindowMillis)
          if (spend(portion, window)) return leftOf(policy, portion, now)
          if (portion.window !== window || portion.left > 0) {
            const lease = yield* ask(orgs.of(org).Lease({ policy, want: want(policy) }))
            portion.window = window
            portion.mine = lease.granted
            portion.left = lease.left
            if (spend(portion, window)) return leftOf(policy, portion, now)
          }
          return yield* overLimit(
            {
              name: policy,
              quota: quotas[policy],
              windowSeconds: Timing.callWindowMillis / 1000,
              resetSeconds: leftOf(policy, portion, now).resetSeconds,
            },
            `The limit is ${quotas[policy]} of these calls per minute.`,
          )
        }),
      )

    return {
      /** Counts one call. Above the quota it is rejected with the time until the window ends. */
      take: (org: string, policy: Policy) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const portion = portionOf(`${policy}/${org}`)
          return spend(portion, Math.floor(now / Timing.callWindowMillis))
            ? Effect.succeed(leftOf(policy, portion, now))
            : fetchPortion(org, policy, portion, now)
        }),

      /** Returns what remains in the current window. Calls that other processes lease count as used. */
      left: Effect.fn("OrgLimits.left")(function* (org: string, policy: Policy) {
        const now = yield* Clock.currentTimeMillis
        const { left } = yield* ask(orgs.of(org).Lease({ policy, want: 0 }))
        const portion = portionOf(`${policy}/${org}`)
        const isOfNow = portion.window === Math.floor(now / Timing.callWindowMillis)
        return leftOf(policy, { ...portion, mine: isOfNow ? portion.mine : 0, left }, now)
      }),
    }
  })

export class OrgLimits extends Context.Service<OrgLimits, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/limits/OrgLimits",
) {
  static readonly layer = (quotas: Quotas) => Layer.effect(OrgLimits, make(quotas))
}
