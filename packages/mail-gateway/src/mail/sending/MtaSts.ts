/**
 * Fetches MTA-STS policies (RFC 8461) over HTTPS through the guarded client, and caches them in memory by id for their
 * `max_age`, so that suppressing the DNS record later has no effect. The cache is lost at restart.
 */
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { unrestricted } from "@svc/cluster/net/SendPermission"
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Clock, Context, Effect, Layer } from "effect"
import type { MTASTSPolicy } from "mailauth"
import { parsePolicy, resolvePolicy, validateMx } from "mailauth/lib/mta-sts.js"
import { Resolver } from "../Resolver.ts"
import { Timing } from "../../Timing.ts"

/** The maximum size of a policy (RFC 8461 section 3.3). */
const policyBytes = 64 * 1024
/** The maximum number of cached policies. */
const capacity = 10_000

interface CachedPolicy {
  readonly id: string
  readonly policy: MTASTSPolicy | undefined
  readonly until: number
  /** The earliest time of the next fetch. */
  readonly retryAfter: number
}

const make = Effect.gen(function* () {
  const client = yield* GuardedClient
  const resolver = yield* Resolver
  const kept = new BoundedMap<string, CachedPolicy>(capacity)

  /** Returns the policy id in DNS, or undefined if it is missing or DNS failed. */
  const idOf = (domain: string) =>
    Effect.gen(function* () {
      const run = yield* Effect.context<never>()
      const found = yield* Effect.tryPromise(() =>
        resolvePolicy(domain, {
          strict: true,
          resolver: (name: string, type: string) =>
            Effect.runPromiseWith(run)(
              Effect.map(resolver.lookup(name, type), (found) =>
                found.map((row) => (typeof row === "string" ? [row] : [...row])),
              ),
            ),
        }),
      )
      return found === false ? undefined : found
    }).pipe(Effect.orElseSucceed(() => undefined))

  const fetched = (domain: string) =>
    client
      .ask(
        new URL(`https://mta-sts.${domain}/.well-known/mta-sts.txt`),
        { method: "GET", headers: {}, atMost: policyBytes },
        unrestricted,
      )
      .pipe(
        Effect.flatMap(({ status, headers, body }) =>
          Effect.try(() => {
            const type = (headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase()
            if (status !== 200 || type !== "text/plain") throw new Error(`${status} ${type}`)
            return parsePolicy(Buffer.from(body), { strict: true })
          }),
        ),
        Effect.timeoutOrElse({ duration: Timing.policyMillis, orElse: () => Effect.fail("late") }),
        Effect.tapError((error) =>
          Effect.logDebug("An MTA-STS policy could not be fetched", { domain, error: String(error) }),
        ),
        Effect.orElseSucceed(() => undefined),
      )

  const policyOf = Effect.fn("MtaSts.policyOf")(function* (domain: string) {
    const now = yield* Clock.currentTimeMillis
    const known = kept.get(domain)
    const valid = known !== undefined && known.until > now ? known.policy : undefined
    const id = yield* idOf(domain)
    if (id === undefined || (known?.id === id && valid !== undefined)) return valid
    // A recent attempt failed.
    if (known !== undefined && known.retryAfter > now) return valid
    const policy = yield* fetched(domain)
    kept.set(domain, {
      id: policy === undefined ? (known?.id ?? "") : id,
      // The previous policy applies until it expires.
      policy: policy ?? valid,
      until: policy === undefined ? (known?.until ?? 0) : now + (policy.maxAge ?? 0) * 1_000,
      retryAfter: now + Timing.policyRetryMillis,
    })
    return policy ?? valid
  })

  return {
    /** Returns the policy to enforce, if any. */
    enforced: Effect.fnUntraced(function* (domain: string) {
      const policy = yield* policyOf(domain)
      return policy?.mode === "enforce" ? policy : undefined
    }),
  }
})

/** Returns whether the policy lists the server (section 4.1). */
export const names = (policy: MTASTSPolicy, server: string): boolean => validateMx(server, policy).valid

export class MtaSts extends Context.Service<MtaSts, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/sending/MtaSts",
) {
  static readonly layer = Layer.effect(MtaSts, make)
}
