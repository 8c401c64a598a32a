import * as OpenConnections from "@svc/tunnel-edge/edge/routing/OpenConnections"
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"

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
