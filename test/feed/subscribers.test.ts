/** Subscribers in memory, without a store: which keys wake which subscribers. */
import { expect, it } from "@effect/vitest"
import { make } from "@svc/cluster/feed/Subscribers"
import { Effect, Exit, Fiber, Scope } from "effect"

/** Returns whether the wait ends without a further notification. */
const resolves = (wait: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(wait, { startImmediately: true })
    for (let turns = 0; turns < 5; turns++) yield* Effect.yieldNow
    const done = fiber.pollUnsafe() !== undefined
    yield* Fiber.interrupt(fiber)
    return done
  })

it.effect("changes between two waits are one notification, and no later one is lost", () =>
  Effect.gen(function* () {
    const subscribers = make()
    const changes = yield* subscribers.subscribe("org")
    expect(yield* resolves(changes.await)).toBe(false)
    for (let i = 0; i < 3; i++) subscribers.wake("org")
    expect(yield* resolves(changes.await)).toBe(true)
    expect(yield* resolves(changes.await)).toBe(false)
    // A notification before the wait begins.
    subscribers.wake("org")
    expect(yield* resolves(changes.await)).toBe(true)
    // A notification during the wait.
    const waiting = yield* Effect.forkChild(changes.await, { startImmediately: true })
    subscribers.wake("org")
    yield* Fiber.join(waiting)
  }),
)

it.effect("a notification wakes exactly the subscribers of its key", () =>
  Effect.gen(function* () {
    const subscribers = make()
    const [one, two, other] = [
      yield* subscribers.subscribe("org"),
      yield* subscribers.subscribe("org"),
      yield* subscribers.subscribe("another"),
    ]
    subscribers.wake("org")
    expect([yield* resolves(one.await), yield* resolves(two.await), yield* resolves(other.await)]).toEqual([
      true,
      true,
      false,
    ])
    subscribers.wakeAll()
    expect([yield* resolves(one.await), yield* resolves(other.await)]).toEqual([true, true])
  }),
)

it.effect("a subscriber that resubscribes when it is woken is woken once per notification", () =>
  Effect.gen(function* () {
    const subscribers = make()
    yield* subscribers.subscribe("org")
    let woken = 0
    const turn = Effect.scoped(
      Effect.gen(function* () {
        const changes = yield* subscribers.subscribe("org")
        yield* changes.await
        if (++woken > 100) yield* Effect.never
      }),
    )
    yield* Effect.forkChild(
      Effect.gen(function* () {
        while (true) yield* turn
      }),
      { startImmediately: true },
    )
    subscribers.wake("org")
    expect(woken).toBe(1)
    subscribers.wakeAll()
    expect(woken).toBe(2)
  }),
)

it.effect("a follower of a kind receives its keys, or undefined if some may have been missed", () =>
  Effect.gen(function* () {
    const subscribers = make()
    const tunnels = yield* subscribers.follow("tunnel")
    subscribers.wake("org")
    expect(yield* resolves(tunnels.await)).toBe(false)
    subscribers.wake("tunnel/ada")
    subscribers.wake("tunnel/bob")
    subscribers.wake("tunnel/ada")
    expect([...(yield* tunnels.await)!]).toEqual(["tunnel/ada", "tunnel/bob"])
    subscribers.wake("tunnel/ada")
    subscribers.wakeAll()
    expect(yield* tunnels.await).toBe(undefined)
    subscribers.wake("tunnel/ada")
    expect([...(yield* tunnels.await)!]).toEqual(["tunnel/ada"])
    // No key changed, but one may have been missed.
    subscribers.wakeAll()
    expect(yield* resolves(tunnels.await)).toBe(true)
  }),
)

it.effect("a follower with 10,000 pending keys receives undefined instead of a part of them", () =>
  Effect.gen(function* () {
    const subscribers = make()
    const tunnels = yield* subscribers.follow("tunnel")
    for (let n = 0; n < 10_000; n++) subscribers.wake(`tunnel/${n}`)
    expect((yield* tunnels.await)?.size).toBe(10_000)
    for (let n = 0; n <= 10_000; n++) subscribers.wake(`tunnel/${n}`)
    expect(yield* tunnels.await).toBe(undefined)
  }),
)

it.effect("a key is removed with its last subscriber", () =>
  Effect.gen(function* () {
    const subscribers = make()
    const scope = yield* Scope.make()
    yield* Scope.provide(subscribers.subscribe("org"), scope)
    expect(subscribers.isEmpty()).toBe(false)
    yield* Scope.close(scope, Exit.void)
    expect(subscribers.isEmpty()).toBe(true)
  }),
)
