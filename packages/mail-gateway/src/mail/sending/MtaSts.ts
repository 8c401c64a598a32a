/**
 * What a domain says about TLS on the way to it (MTA-STS, RFC 8461): its policy is fetched over HTTPS through the guarded
 * client and kept in memory under its id for its `max_age`, so that whoever suppresses the record later gains nothing. A
 * process that starts anew asks anew.
 */
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { freely } from "@svc/cluster/net/Leaving"
import { Clock, Context, Effect, Layer } from "effect"
import type { MTASTSPolicy } from "mailauth"
import { parsePolicy, resolvePolicy, validateMx } from "mailauth/lib/mta-sts.js"
import { Resolver } from "../Resolver.ts"
import { Timing } from "../../Timing.ts"

/** RFC 8461 section 3.3: more than this is no policy. */
const policyBytes = 64 * 1024
/** Domains whose policies are kept. */
const capacity = 10_000

interface Kept {
  readonly id: string
  readonly policy: MTASTSPolicy | undefined
  readonly until: number
  /** No new one is asked for before. */
  readonly next: number
}

const make = Effect.gen(function* () {
  const client = yield* GuardedClient
  const resolver = yield* Resolver
  const kept = new Map<string, Kept>()

  /** The id that DNS has; undefined where there is none, or none could be had. */
  const idOf = (domain: string) =>
    Effect.gen(function* () {
      const run = yield* Effect.context<never>()
      const found = yield* Effect.tryPromise(() =>
        resolvePolicy(domain, {
          strict: true,
          resolver: (name: string, type: string) =>
            Effect.runPromiseWith(run)(
              resolver.lookup(name, type).pipe(
                Effect.map((found) => found.map((row) => (typeof row === "string" ? [row] : [...row]))),
                // The library reads node's error codes.
                Effect.mapError(({ code }) => Object.assign(new Error(code), { code })),
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
        freely,
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
          Effect.logDebug("An MTA-STS policy could not be had", { domain, error: String(error) }),
        ),
        Effect.orElseSucceed(() => undefined),
      )

  const policyOf = Effect.fn("MtaSts.policyOf")(function* (domain: string) {
    const now = yield* Clock.currentTimeMillis
    const known = kept.get(domain)
    const valid = known !== undefined && known.until > now ? known.policy : undefined
    const id = yield* idOf(domain)
    if (id === undefined || (known?.id === id && valid !== undefined)) return valid
    // Where it was asked for just now, and could not be had.
    if (known !== undefined && known.next > now) return valid
    const policy = yield* fetched(domain)
    if (kept.size >= capacity) kept.delete(kept.keys().next().value!)
    kept.set(domain, {
      id: policy === undefined ? (known?.id ?? "") : id,
      // The former one holds until its time is over.
      policy: policy ?? valid,
      until: policy === undefined ? (known?.until ?? 0) : now + (policy.maxAge ?? 0) * 1_000,
      next: now + Timing.policyRetryMillis,
    })
    return policy ?? valid
  })

  return {
    /** The policy that is to be enforced; undefined where there is none. */
    enforced: Effect.fnUntraced(function* (domain: string) {
      const policy = yield* policyOf(domain)
      return policy?.mode === "enforce" ? policy : undefined
    }),
  }
})

/** Whether the policy names the server (section 4.1). */
export const names = (policy: MTASTSPolicy, server: string): boolean => validateMx(server, policy).valid

export class MtaSts extends Context.Service<MtaSts, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/sending/MtaSts",
) {
  static readonly layer = Layer.effect(MtaSts, make)
}
