/** Each statement has its own connection, so a statement that waits or takes long delays no other. */
import { expect, layer } from "@effect/vitest"
import { Reads, Unhurried, Writes } from "@svc/cluster/store/Database"
import { Effect, Fiber } from "effect"
import { waitUntil } from "../harness/Actors.ts"
import { databaseLayer } from "../harness/Database.ts"

layer(databaseLayer)("a statement that waits", (it) => {
  it.effect.each([
    ["read", Effect.service(Reads)],
    ["write", Effect.service(Writes)],
  ] as const)("holds up no other %s", ([, client]) =>
    Effect.gen(function* () {
      const sql = yield* client
      const holder = yield* Unhurried
      yield* sql`select 1`
      yield* holder
        .withTransaction(
          Effect.gen(function* () {
            yield* holder`select pg_advisory_xact_lock(4711)`
            const waits = yield* Effect.forkChild(sql`select pg_advisory_xact_lock(4711)`)
            // This query uses the same client; on a shared connection it would wait for the lock.
            const others = yield* waitUntil(
              sql<{
                waiting: boolean
              }>`select count(*) > 0 as waiting from pg_locks where locktype = 'advisory' and not granted`,
              ([row]) => row?.waiting === true,
              0,
            )
            expect(others.value).toEqual([{ waiting: true }])
            expect(waits.pollUnsafe()).toBe(undefined)
            return waits
          }),
        )
        .pipe(Effect.flatMap(Fiber.join))
    }),
  )
})
