import * as Stores from "@svc/cluster/store/Database"
import { Effect, Exit, Layer, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { closeScope, makeDatabase, type TestDatabase } from "../harness/Database.ts"
import { eventually } from "../harness/Service.ts"
import { type SilentProxy, startSilentProxy } from "../harness/SilentProxy.ts"

let database: TestDatabase
let proxy: SilentProxy
beforeAll(async () => {
  database = await makeDatabase()
  const { path, host, port } = database.settings
  proxy = await startSilentProxy(path === undefined ? { host: host!, port: port! } : { path })
})
afterAll(async () => {
  await proxy.stop()
  await database.drop()
})

describe("connections to the database that stop answering without closing", () => {
  it("are closed, and every client recovers", async () => {
    const { path: _, ...settings } = database.settings
    const scope = Scope.makeUnsafe()
    const context = await Effect.runPromise(
      Layer.buildWithScope(Layer.fresh(Stores.layer({ ...settings, host: "127.0.0.1", port: proxy.port })), scope),
    )
    const one = <I>(tag: Effect.Effect<Stores.Reads["Service"], never, I>) =>
      Effect.runPromiseExit(
        Stores.orUnavailable(Effect.flatMap(tag, (sql) => sql`select pg_sleep(0.05)`)).pipe(
          Effect.provideContext(context as never),
        ) as Effect.Effect<unknown, unknown>,
      )
    const transaction = () =>
      Effect.runPromiseExit(
        Stores.orUnavailable(
          Effect.flatMap(Effect.service(Stores.Writes), (sql) => sql.withTransaction(sql`select pg_sleep(0.05)`)),
        ).pipe(Effect.provideContext(context)),
      )
    const all = () =>
      Promise.all([
        ...Array.from({ length: 8 }, () => one(Effect.service(Stores.Reads))),
        ...Array.from({ length: 8 }, () => one(Effect.service(Stores.Writes))),
        one(Effect.service(Stores.ClusterSql)),
        transaction(),
      ])
    expect((await all()).every(Exit.isSuccess)).toBe(true)
    expect(proxy.silence()).toBeGreaterThan(2)
    const first = await all()
    expect(first.some(Exit.isFailure)).toBe(true)
    // The store must recover within 15 s after the silence began. The first round took 5 s of them.
    await eventually(all, (exits) => exits.every(Exit.isSuccess), 10)
    await closeScope(scope)
  })
})
