/**
 * Limits of unauthenticated calls by client address or email address. Calls that send a mail are counted in the store,
 * over all processes; others in this process. Only a keyed hash of an address is stored, for one window.
 */
import type { PublicLimitName } from "@svc/domain/account/Policy"
import { Clock, Context, Effect, Layer } from "effect"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { overLimit } from "../observe/RateLimit.ts"

interface PublicLimit {
  readonly name: string
  readonly quota: number
  readonly windowSeconds: number
  /** Whether the limit is counted over all processes. */
  readonly shared: boolean
}

/** The remaining calls after an accepted one. */
interface Left {
  readonly limit: PublicLimit
  readonly remaining: number
  readonly resetSeconds: number
}

type PublicQuotas = { readonly [N in PublicLimitName]: number }

/** Maximum number of counters in this process. More clients than this are an attack, and all counters are reset. */
const countersAtMost = 100_000

const make = (quotas: PublicQuotas) =>
  Effect.gen(function* () {
    const sql = yield* Writes
    const sealing = yield* Sealing
    const counters = new Map<string, { readonly window: number; used: number }>()

    const limits: { readonly [N in PublicLimitName]: PublicLimit } = {
      profile: { name: "profile", quota: quotas.profile, windowSeconds: 60, shared: false },
      hits: { name: "hits", quota: quotas.hits, windowSeconds: 60, shared: false },
      device: { name: "device", quota: quotas.device, windowSeconds: 60, shared: false },
      contact: { name: "contact", quota: quotas.contact, windowSeconds: 60, shared: true },
      magic_link: { name: "magic_link", quota: quotas.magic_link, windowSeconds: 60, shared: true },
      oauth_register: { name: "oauth_register", quota: quotas.oauth_register, windowSeconds: 60, shared: false },
      oauth_authorize: { name: "oauth_authorize", quota: quotas.oauth_authorize, windowSeconds: 60, shared: false },
      oauth_token: { name: "oauth_token", quota: quotas.oauth_token, windowSeconds: 60, shared: false },
      oauth_token_failed: {
        name: "oauth_token_failed",
        quota: quotas.oauth_token_failed,
        windowSeconds: 60,
        shared: false,
      },
      oauth_document: { name: "oauth_document", quota: quotas.oauth_document, windowSeconds: 60, shared: false },
    }

    const here = (key: string, window: number) => {
      const present = counters.get(key)
      if (present?.window === window) return ++present.used
      if (counters.size >= countersAtMost) counters.clear()
      counters.set(key, { window, used: 1 })
      return 1
    }

    const everywhere = (key: string, start: Date) =>
      Effect.map(
        sql<{ used: number }>`
          insert into public_limit as l (key, window_start, used)
          values (${new TextEncoder().encode(sealing.stamp("limit", key).slice(0, 22))}, ${start}, 1)
          on conflict (key) do update
          set used = case when l.window_start = excluded.window_start then l.used + 1 else 1 end, window_start = excluded.window_start
          returning used`,
        ([row]) => row!.used,
      )

    return {
      /** Counts one call of `client`. Above the quota it is rejected with the time until the window ends. */
      take: Effect.fn("PublicLimits.take")(function* (name: PublicLimitName, client: string) {
        const limit = limits[name]
        const millis = limit.windowSeconds * 1000
        const now = yield* Clock.currentTimeMillis
        const window = Math.floor(now / millis)
        const key = `${name}/${client}`
        const used = limit.shared ? yield* everywhere(key, new Date(window * millis)) : here(key, window)
        const resetSeconds = Math.ceil(((window + 1) * millis - now) / 1000)
        if (used > limit.quota) {
          return yield* overLimit(
            { ...limit, resetSeconds },
            `The limit is ${limit.quota} of these calls in ${limit.windowSeconds} seconds.`,
          )
        }
        const left: Left = { limit, remaining: limit.quota - used, resetSeconds }
        return left
      }, orUnavailable),
    }
  })

export class PublicLimits extends Context.Service<PublicLimits, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/limits/PublicLimits",
) {
  static readonly layer = (quotas: PublicQuotas) => Layer.effect(PublicLimits, make(quotas))
}
