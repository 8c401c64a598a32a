import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { actors, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

layer(actors())("claiming an Identity", (it) => {
  it.effect("reads the state after the last write of the former owner", () =>
    Effect.gen(function* () {
      const [sql, reads, ada] = [yield* Writes, yield* Reads, newHandle("ada")]
      yield* ask(
        (yield* Identities).of(ada).Create({ org_id: yield* makeOrg, identity_id: yield* makeUuidV7, handle: ada }),
      )
      const wrote = yield* Deferred.make<void>()
      const claiming = yield* Deferred.make<void>()
      // A write that has taken its fence, and commits only after another process waits for it with a claim.
      const former = yield* sql
        .withTransaction(
          Effect.gen(function* () {
            yield* sql`select 1 from actor where kind = 'Identity' and id = ${ada} for share`
            yield* sql`update identity set handle = 'a-da' where canonical = ${ada}`
            yield* Deferred.succeed(wrote, undefined)
            yield* Deferred.await(claiming)
          }),
        )
        .pipe(Effect.forkChild)
      yield* Deferred.await(wrote)
      const claim = yield* sql<{ claimed: number; handle: string }>`
        select claimed, handle from claimed_identity(${ada})`.pipe(Effect.forkChild)
      const waits = reads<{ waits: boolean }>`
        select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%claimed_identity%') as waits`
      yield* Effect.repeat(waits, { until: ([row]) => row!.waits })
      yield* Deferred.succeed(claiming, undefined)
      yield* Fiber.join(former)
      const [found] = yield* Fiber.join(claim)
      expect(found).toMatchObject({ handle: "a-da" })
      expect(found!.claimed).toBeGreaterThan(1)
    }),
  )
})
