/**
 * Limits of credentialed calls per Org, exact over every process: the Org's actor owns the window's budget and this
 * process spends portions of it (`account/CallBudget`). What a portion has left when the window ends is lost, so a call
 * may be refused early by at most the portions that other processes hold; more than the quota is never let through.
 */
import type { Policy } from "@svc/domain/account/OrgProtocol"
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import type { Quotas } from "../account/CallBudget.ts"
import { Orgs } from "../account/Orgs.ts"
import { ask } from "../actor/Ask.ts"
import { Timing } from "../Timing.ts"
import { overLimit } from "./RateLimit.ts"

/** What is left after a call that was let through; `remaining` is what this process knows of. */
export interface OrgLeft {
  readonly policy: Policy
  readonly quota: number
  readonly remaining: number
  readonly resetSeconds: number
}

interface Portion {
  window: number
  mine: number
  left: number
  /** Calls that wait for the actor's answer share it. */
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

    /** A twentieth of the quota at a time, so that a handful of processes strand little. */
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
      resetSeconds: Math.max(1, Math.ceil((Timing.callWindowMillis - (now % Timing.callWindowMillis)) / 1000)),
    })

    /** Asks the actor for a portion, unless another call just got one or the window is known to be used up. */
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
            `At most ${quotas[policy]} such calls a minute.`,
          )
        }),
      )

    return {
      /** Counts one call; over the quota it is refused with the time until the window ends. */
      take: (org: string, policy: Policy) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const portion = portionOf(`${policy}/${org}`)
          return spend(portion, Math.floor(now / Timing.callWindowMillis))
            ? Effect.succeed(leftOf(policy, portion, now))
            : fetchPortion(org, policy, portion, now)
        }),
    }
  })

export class OrgLimits extends Context.Service<OrgLimits, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/limits/OrgLimits",
) {
  static readonly layer = (quotas: Quotas) => Layer.effect(OrgLimits, make(quotas))
}
