/**
 * The context that accompanies a message: it contains few services, whoever sends the message, since the library copies it for every
 * message.
 */
import { ambientOf, apart } from "@svc/cluster/actor/MessageContext"
import { namedClient } from "@svc/cluster/actor/ActorClients"
import { ask } from "@svc/cluster/actor/Ask"
import { Timing } from "@svc/cluster/Timing"
import { Moved } from "@svc/domain/actor/Protocol"
import { NotFound } from "@svc/domain/problems/Problem"
import { Clock, Context, Duration, Effect, Fiber, Layer, References } from "effect"
import { Entity, MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TestClock } from "effect/testing"
import { it as effectIt } from "@effect/vitest"
import { expect, it } from "vitest"
import { countsGrow, countsOf } from "../harness/Counters.ts"

class Needed extends Context.Service<Needed, string>()("test/Needed") {}
class Around extends Context.Service<Around, string>()("test/Around") {}

const around = Layer.mergeAll(Layer.succeed(Needed, "needed"), Layer.succeed(Around, "around"))

const keysOf = (context: Context.Context<never>) => [...context.mapUnsafe.keys()]

const alone = Sharding.layer.pipe(
  Layer.provide([Runners.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(MessageStorage.layerNoop),
  Layer.provide(ShardingConfig.layer()),
)

/** Creates an entity that records the services of its handler's context in `seen`. */
const telling = () => {
  const seen: Array<ReadonlyArray<string>> = []
  const entity = Entity.make("Telling", [Rpc.make("Tell")])
  const handler = Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => void seen.push(keysOf(context))),
  )
  return { seen, entity, actors: entity.toLayer({ Tell: () => handler }) }
}

it("builds a layer with only the services that it and the runtime need", async () => {
  let keys: ReadonlyArray<string> = []
  const layer = Layer.effectDiscard(
    Effect.gen(function* () {
      expect(yield* Needed).toBe("needed")
      keys = keysOf(yield* Effect.context<never>())
    }),
  )
  await Effect.runPromise(
    Effect.scoped(
      Layer.build(apart(layer, Context.pick(Needed))).pipe(Effect.provide(around), Effect.provide(TestClock.layer())),
    ),
  )
  expect(keys).toContain(Clock.Clock.key)
  expect(keys).not.toContain(Around.key)
})

it("keeps the services that the runtime reads from every fiber", () => {
  const context = Context.make(Around, "around").pipe(Context.add(References.MinimumLogLevel, "None"))
  expect(keysOf(ambientOf(context as Context.Context<never>))).toEqual([References.MinimumLogLevel.key])
})

it("sends a message without the caller's context", async () => {
  const { seen, entity, actors } = telling()
  await Effect.runPromise(
    Effect.gen(function* () {
      const of = yield* namedClient("Telling", entity)
      yield* Effect.provideService(of("one").Tell(), Around, "around")
    }).pipe(Effect.provide(apart(actors, Context.pick(Sharding.Sharding))), Effect.provide(alone)),
  )
  expect(seen[0]).not.toContain(Around.key)
})

it("carries the caller's trace if traces are exported", async () => {
  const { seen, entity, actors } = telling()
  let trace: string | undefined
  const call = Effect.gen(function* () {
    const of = yield* namedClient("Telling", entity)
    yield* of("one").Tell()
    trace = (yield* Effect.currentSpan).traceId
  })
  const spans: Array<{ readonly name: string; readonly traceId: string }> = []
  const traced = Effect.tracer.pipe(
    Effect.flatMap((tracer) =>
      Effect.withTracer(Effect.withSpan(call, "asking"), {
        ...tracer,
        span: (options) => {
          const span = tracer.span(options)
          spans.push(span)
          return span
        },
      }),
    ),
  )
  await Effect.runPromise(
    traced.pipe(Effect.provide(apart(actors, Context.pick(Sharding.Sharding))), Effect.provide(alone)),
  )
  expect(spans.map(({ name }) => name)).toEqual(["asking", "Telling.client.Tell", "Telling.Tell"])
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([trace]))
  expect(seen).toHaveLength(1)
})

const calls = countsOf("svc_asks_total", "message", "outcome")

effectIt.effect("a call is repeated while its actor moves, and ends at its deadline", () =>
  Effect.gen(function* () {
    let tries = 0
    let left = 3
    const elsewhere = [new Moved(), { _tag: "EntityNotAssignedToRunner" }]
    const moving = Effect.suspend(() =>
      ++tries <= left ? Effect.fail(elsewhere[tries % 2]!) : Effect.succeed("found"),
    )
    const call = yield* Effect.forkChild(ask(moving), { startImmediately: true })
    const wait = Duration.toMillis(Timing.askRetry)
    yield* TestClock.adjust(wait)
    yield* TestClock.adjust(wait)
    expect([tries, call.pollUnsafe()]).toEqual([3, undefined])
    yield* TestClock.adjust(wait)
    expect(yield* Fiber.join(call)).toBe("found")
    left = Infinity
    const unavailable = { code: "unavailable", retry_after_seconds: 1 }
    for (const message of [moving, Effect.never]) {
      expect(yield* Effect.flip(ask(message, "20 millis"))).toMatchObject(unavailable)
    }
  }),
)

effectIt.effect("a rejection is an answer, and a message that no actor took is not", () =>
  Effect.gen(function* () {
    const before = yield* calls
    const unavailable = { code: "unavailable", retry_after_seconds: 1 }
    for (const _tag of ["MailboxFull", "AlreadyProcessingMessage", "PersistenceError"]) {
      expect(yield* Effect.flip(ask(Effect.fail({ _tag })))).toMatchObject(unavailable)
    }
    expect(yield* Effect.flip(ask(Effect.fail(new NotFound({ detail: "no" }))))).toMatchObject({ code: "not_found" })
    yield* ask(Effect.void)
    yield* countsGrow(calls, before, { "other unavailable": 3, "other answered": 2 })
  }),
)

it("counts calls by the kind of the actor and the message", async () => {
  const { entity, actors } = telling()
  await Effect.runPromise(
    Effect.gen(function* () {
      const of = yield* namedClient("Telling", entity)
      const before = yield* calls
      yield* ask(of("one").Tell())
      yield* ask(of("two").Tell())
      yield* countsGrow(calls, before, { "Telling.Tell answered": 2, "other answered": 0 })
    }).pipe(Effect.provide(apart(actors, Context.pick(Sharding.Sharding))), Effect.provide(alone)),
  )
})
