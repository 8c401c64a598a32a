/** A database outage logs one warning per pool when it begins and one when it ends, however many statements fail in between. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import * as Database from "@svc/cluster/store/Database"
import * as Reachability from "@svc/cluster/store/Reachability"
import { Effect, Exit, Layer, Logger, References, Schedule } from "effect"
import { SqlError } from "effect/sql"
import { describe, expect, it } from "vitest"
import { connection } from "../harness/Database.ts"

/** A proxy in front of PostgreSQL that the test can close and reopen. */
const front = async () => {
  const { path, host, port } = connection()
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = path === undefined ? connect(port!, host) : connect(path)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on("error", () => socket.destroy())
    }
    near.pipe(far).pipe(near)
  })
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, "127.0.0.1", resolve))
  await listen(0)
  const { port: at } = server.address() as AddressInfo
  const close = () => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return { port: at, close, open: () => listen(at) }
}

describe("a pool of connections", () => {
  it("that never connected reports nothing, since the start fails with its own message", async () => {
    const written: Array<unknown> = []
    const logger = Logger.make<unknown, void>(({ message }) => void written.push(message))
    const pool = Reachability.make("reads")
    const refused = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("refused") }) })
    const run = (effect: Effect.Effect<void>) => Effect.runPromise(Effect.provide(effect, Logger.layer([logger])))
    await run(pool.failed(refused))
    await run(pool.reached)
    expect(written).toEqual([])
    await run(pool.failed(refused))
    expect(written).toHaveLength(1)
  })

  it("reports once that it cannot connect, with the reason, and once that it can again", async () => {
    const server = await front()
    const written: Array<{ level: string; text: string; pool: unknown }> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message, fiber }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      written.push({ level: logLevel, text: String(message), pool: annotations["pool"] })
    })
    const { username, password } = connection()
    const settings = { host: "127.0.0.1", port: server.port, username, password, database: "postgres" }
    const pools = Effect.all([Database.Reads, Database.Writes, Database.Unhurried, Database.ClusterSql])
    await Effect.runPromise(
      Effect.gen(function* () {
        const clients = yield* pools
        const ask = Effect.forEach(clients, (sql) => Effect.exit(sql`select 1`), { concurrency: "unbounded" })
        yield* ask
        yield* Effect.promise(server.close)
        for (let n = 0; n < 20; n++) yield* ask
        expect(written.map(({ level }) => level)).toEqual(["Warn", "Warn", "Warn", "Warn"])
        for (const name of Object.keys(Database.poolSizes)) {
          expect(written.find(({ pool }) => pool === name)?.text).toBe(
            `The pool ${name} cannot connect to the database: connect ECONNREFUSED 127.0.0.1:${server.port}.`,
          )
        }
        written.length = 0
        yield* Effect.promise(server.open)
        yield* Effect.repeat(ask, {
          until: (all) => all.every(Exit.isSuccess),
          schedule: Schedule.spaced("50 millis"),
        })
        yield* ask
        expect(written.map(({ text }) => text.replace(/[\d.]+ s/, "n s")).toSorted()).toEqual(
          Object.keys(Database.poolSizes)
            .map((name) => `The pool ${name} can connect to the database again, after n s.`)
            .toSorted(),
        )
      }).pipe(Effect.provide(Layer.fresh(Database.layer(settings))), Effect.provide(Logger.layer([logger]))),
    )
    await server.close()
  })
})
