import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { make } from "@svc/cluster/identity/Ownership"
import { MasterKeysForTests } from "../harness/MasterKeys.ts"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Layer, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { closeScope, makeDatabase, type TestDatabase } from "../harness/Database.ts"

let database: TestDatabase
const scope = Scope.makeUnsafe()
let run: <A, E>(effect: Effect.Effect<A, E, Stores.Reads | Stores.Writes | Sealing | ChangeFeed>) => Promise<A>

beforeAll(async () => {
  database = await makeDatabase()
  const layer = Layer.merge(ChangeFeed.layer, Sealing.layer(await MasterKeysForTests())).pipe(
    Layer.provideMerge(Stores.layer(database.settings)),
  )
  const context = await Effect.runPromise(Layer.buildWithScope(Layer.fresh(layer), scope))
  run = (effect) => Effect.runPromise(Effect.provideContext(effect, context) as Effect.Effect<never>)
})
afterAll(async () => {
  await closeScope(scope)
  await database.drop()
})

/** A write that says whether it happened. */
const touch = (ownership: Effect.Success<ReturnType<typeof make>>) =>
  Effect.gen(function* () {
    const sql = yield* Stores.Writes
    return yield* ownership.write((_, fence) =>
      Effect.map(
        sql<{ owned: boolean }>`
          with ${fence}, done as (
            insert into handle (canonical, handle, org_id, registered_at)
            select 'write' || (select count(*) from handle), 'x', '00000000-0000-7000-8000-000000000000'::uuid, now() from fence returning 1)
          select exists (select from fence) as owned`,
        ([row]) => (row?.owned === true ? { value: "written" } : undefined),
      ),
    )
  })

describe("an actor that another process has replaced", () => {
  it("can write no more, and says that it moved", async () => {
    const result = await run(
      Effect.gen(function* () {
        const old = yield* make("fenced")
        const first = yield* touch(old)
        const present = yield* make("fenced")
        yield* present.state
        const stale = yield* Effect.flip(touch(old))
        // It takes nothing before its lock on the shard must have been confirmed or lost.
        const again = yield* Effect.flip(old.state)
        const fresh = yield* touch(present)
        const sql = yield* Stores.Reads
        const rows = yield* sql`select 1 from handle`
        return { first, stale: stale._tag, again: again._tag, fresh, rows: rows.length }
      }),
    )
    expect(result).toEqual({ first: "written", stale: "Moved", again: "Moved", fresh: "written", rows: 2 })
  })
})
