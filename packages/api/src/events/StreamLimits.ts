/** How many streams may be open at once, per credential and per Org, in this process. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { RateLimited } from "@svc/domain/problems/Problem"
import { overLimit } from "@svc/cluster/limits/RateLimit"
import * as Metrics from "@svc/cluster/observe/Metrics"
import { Context, Effect, Layer, type Scope } from "effect"

export interface StreamQuotas {
  readonly streams_credential: number
  readonly streams_org: number
}

/** Streams end when their client does, which nobody can know beforehand. */
const retryAfterSeconds = 30

const streams = Metrics.gauge("svc_event_streams", "Open streams of Events", [])

const make = (quotas: StreamQuotas) =>
  Effect.gen(function* () {
    let all = 0
    yield* streams.scoped([], () => all)
    const open = new Map<string, number>()

    /** One more for the key until the scope closes, or a refusal that says of whom there are too many. */
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
      /** Counts a stream of the caller until the scope closes. */
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
    }
  })

export class StreamLimits extends Context.Service<StreamLimits, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/api/events/StreamLimits",
) {
  static readonly layer = (quotas: StreamQuotas) => Layer.effect(StreamLimits, make(quotas))
}
