/** The limits of open streams of Events in one process. */
import { StreamLimits } from "@svc/api/events/StreamLimits"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Result, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"

it.effect("Open streams count for their credential and their Org until they end", () =>
  Effect.gen(function* () {
    const limits = yield* StreamLimits
    const open = Effect.fnUntraced(function* (credentialId: string, org = "one") {
      const scope = yield* Scope.make()
      const taken = yield* Effect.result(Scope.provide(limits.take({ credentialId, org: { id: org } }), scope))
      const end = Scope.close(scope, Exit.void)
      if (Result.isSuccess(taken)) return { limit: undefined, end }
      yield* end
      return { limit: taken.failure.detail, end }
    })
    const limitOf = (credentialId: string, org?: string) => Effect.map(open(credentialId, org), ({ limit }) => limit)
    const first = yield* open("a")
    expect(yield* limitOf("a")).toBeUndefined()
    expect(yield* limitOf("a")).toMatch(/At most 2 streams of one credential/)
    yield* first.end
    expect(yield* limitOf("a")).toBeUndefined()
    expect(yield* limitOf("a")).toMatch(/At most 2 streams of one credential/)
    expect(yield* limitOf("b")).toBeUndefined()
    expect(yield* limitOf("b")).toMatch(/At most 3 streams of one Org/)
    expect(yield* limitOf("c", "two")).toBeUndefined()
    expect([limits.ofOrg("one"), limits.ofOrg("none")]).toEqual([
      { used: 3, limit: 3 },
      { used: 0, limit: 3 },
    ])
    expect(yield* PrometheusMetrics.format()).toMatch(/^svc_event_streams 4$/m)
  }).pipe(Effect.provide(StreamLimits.layer({ streams_credential: 2, streams_org: 3 }))),
)
