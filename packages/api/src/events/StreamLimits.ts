/** Limits the concurrent streams per credential and per Org in this process. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { RateLimited } from "@svc/domain/problems/Problem"
import { overLimit } from "@svc/cluster/observe/RateLimit"
import * as Metrics from "@svc/cluster/observe/Metrics"
import { Context, Effect, Layer, type Scope } from "effect"

interface StreamQuotas {
  readonly streams_credential: number
  readonly streams_org: number
}

/** Seconds to suggest for a retry, because nobody knows when a stream will end. */
const retryAfterSeconds = 30

const streams = Metrics.gauge("svc_event_streams", "Open streams of Events", [])

const make = (quotas: StreamQuotas) =>
  Effect.gen(function* () {
    let all = 0
    yield* streams.scoped([], () => all)
    const open = new Map<string, number>()

    /** Claims a stream for the key until the scope closes, or fails with the exceeded limit. */
    const hold = (
      key: string,
      name: keyof StreamQuotas,
      whose: string,
    ): Effect.Effect<void, RateLimited, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          const quota = quotas[name]
          const now = open.get(key) ?? 0
          if (now >= quota) {
            return Effect.fail(
              overLimit(
                { name, quota, resetSeconds: retryAfterSeconds },
                `At most ${quota} streams of ${whose} may be open at once.`,
              ),
            )
          }
          open.set(key, now + 1)
          return Effect.void
        }),
        () =>
          Effect.sync(() => {
            const left = (open.get(key) ?? 1) - 1
            if (left > 0) open.set(key, left)
            else open.delete(key)
          }),
      )

    return {
      /** Claims a stream for the caller until the scope closes. */
      take: ({ credentialId, org }: Pick<CallerInfo, "credentialId"> & { readonly org: { readonly id: string } }) =>
        Effect.andThen(
          hold(credentialId, "streams_credential", "one credential"),
          hold(org.id, "streams_org", "one Org"),
        ).pipe(
          Effect.andThen(
            Effect.acquireRelease(
              Effect.sync(() => void all++),
              () => Effect.sync(() => void all--),
            ),
          ),
        ),

      /** Returns the number of open streams of an Org in this process. */
      ofOrg: (org: string) => ({ used: open.get(org) ?? 0, limit: quotas.streams_org }),
    }
  })

export class StreamLimits extends Context.Service<StreamLimits, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/api/events/StreamLimits",
) {
  static readonly layer = (quotas: StreamQuotas) => Layer.effect(StreamLimits, make(quotas))
}
