import * as OpenConnections from "@svc/tunnel-edge/edge/routing/OpenConnections"
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

/** The connections only pass settings on. */
const settings = (name: string) => ({ name }) as unknown as Standing

it.effect("An open connection keeps the newest settings when an older lookup ends later", () =>
  Effect.gen(function* () {
    const lookups = [yield* Deferred.make<Standing>(), yield* Deferred.make<Standing>()]
    let started = 0
    const connections = OpenConnections.make(() => Effect.suspend(() => Deferred.await(lookups[started++]!)))
    let changes = 0
    const connection = connections.open("ada", settings("first"), () => void changes++)
    const older = yield* Effect.forkChild(connections.refresh("ada"), { startImmediately: true })
    const newer = yield* Effect.forkChild(connections.refresh("ada"), { startImmediately: true })
    expect(started).toBe(2)
    const [outdated, current] = [settings("outdated"), settings("current")]
    yield* Deferred.succeed(lookups[1]!, current)
    yield* Fiber.join(newer)
    yield* Deferred.succeed(lookups[0]!, outdated)
    yield* Fiber.join(older)
    expect([connection.now(), changes]).toEqual([current, 1])
  }),
)

it.effect("A failed lookup is repeated every second while the name has a connection, and not after a newer one", () =>
  Effect.gen(function* () {
    let [looks, fails] = [0, true]
    const current = settings("current")
    const connections = OpenConnections.make(() =>
      Effect.suspend(() => (looks++, fails ? Effect.fail("down") : Effect.succeed(current))),
    )
    yield* connections.refresh("ada")
    expect(looks).toBe(0)
    let changes = 0
    const connection = connections.open("ada", settings("first"), () => void changes++)
    const second = connections.open("ada", settings("second"), () => void changes++)
    expect([connections.names(), second.now()]).toEqual([["ada"], connection.now()])
    yield* Effect.forkChild(connections.refresh("ada"), { startImmediately: true })
    yield* TestClock.adjust(999)
    expect(looks).toBe(1)
    yield* TestClock.adjust(1_001)
    expect(looks).toBe(3)
    // A newer lookup ends the repetition of the older one.
    yield* Effect.forkChild(connections.refresh("ada"), { startImmediately: true })
    expect(looks).toBe(4)
    yield* TestClock.adjust(1_000)
    expect(looks).toBe(6)
    yield* TestClock.adjust(1_000)
    expect(looks).toBe(7)
    fails = false
    yield* TestClock.adjust(1_000)
    expect([looks, changes, connection.now()]).toEqual([8, 2, current])
    yield* connections.refresh("ada")
    expect(changes).toBe(2)
    fails = true
    yield* Effect.forkChild(connections.refresh("ada"), { startImmediately: true })
    connection.close()
    yield* TestClock.adjust(1_000)
    expect([looks, connections.names()]).toEqual([11, ["ada"]])
    second.close()
    yield* TestClock.adjust(5_000)
    expect([looks, connections.names()]).toEqual([12, []])
  }),
)
