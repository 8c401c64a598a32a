import { randomUUID } from "node:crypto"
import { system } from "@svc/domain/account/Initiator"
import { NotFound, Unavailable } from "@svc/domain/problems/Problem"
import * as Ownership from "@svc/cluster/actor/Ownership"
import { commit, commitTogether, type Fenced, learned, recalled } from "@svc/cluster/actor/Write"
import * as Stores from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { databaseLayer } from "../harness/Database.ts"

/** Activates an actor whose state is the number of writes that it has loaded or made. */
const activate = (
  kind: string,
  id: string,
  more: Pick<Parameters<typeof Ownership.make<number>>[0], "due" | "committed"> = {},
) =>
  Effect.gen(function* () {
    const sql = yield* Stores.Writes
    return yield* Ownership.make({
      ...more,
      kind,
      id,
      load: Effect.map(
        sql<{ n: number }>`select count(*)::int as n from handle where handle = ${`${kind}/${id}`}`,
        ([row]) => row!.n,
      ),
    })
  })

const insert = (write: Fenced, owner: string, canonical: string = randomUUID()) =>
  commit(
    write,
    write.sql`done as (
      insert into handle (canonical, handle, org_id, registered_at)
      select ${canonical}::text, ${owner}, '00000000-0000-7000-8000-000000000000'::uuid, now() from fence)`,
  )

/** Inserts the row in a statement for the writes of several actors. */
const insertTogether = (write: Fenced, owner: string, canonical: string) =>
  Effect.flatMap(
    commitTogether<{ done: boolean }>(
      [write],
      write.sql`done as (
        insert into handle (canonical, handle, org_id, registered_at)
        select ${canonical}::text, ${owner}, '00000000-0000-7000-8000-000000000000'::uuid, now() from fence)`,
      write.sql`true as done`,
    ),
    ([exit]) => exit!,
  )

layer(Layer.provideMerge(Layer.empty, databaseLayer))("an actor of any kind", (it) => {
  for (const kind of ["Identity", "Org"]) {
    it.effect(`of kind ${kind} that another process has replaced writes no more, and says that it moved`, () =>
      Effect.gen(function* () {
        const id = newHandle("fenced")
        const touch = (actor: Ownership.Ownership<number>) =>
          Effect.as(
            actor.write(system, (write) => insert(write, `${kind}/${id}`)),
            "written",
          )
        const old = yield* activate(kind, id)
        expect(yield* touch(old)).toBe("written")
        const present = yield* activate(kind, id)
        expect(yield* present.state).toBe(1)
        expect((yield* Effect.flip(touch(old)))._tag).toBe("Moved")
        // It accepts no message until its lock on the shard is confirmed or lost.
        expect((yield* Effect.flip(old.state))._tag).toBe("Moved")
        expect(yield* touch(present)).toBe("written")
        const rows = yield* Effect.flatMap(
          Stores.Reads,
          (sql) => sql`select 1 from handle where handle = ${`${kind}/${id}`}`,
        )
        expect(rows.length).toBe(2)
        // It waits for three seconds, even if the clock is set back by an hour meanwhile.
        yield* TestClock.setTime((yield* Clock.currentTimeMillis) - 3_600_000)
        expect((yield* Effect.flip(old.state))._tag).toBe("Moved")
        yield* TestClock.adjust("3 seconds")
        expect(yield* old.state).toBe(2)
      }),
    )
  }

  it.effect("keeps its state after a rejection and after a change", () =>
    Effect.gen(function* () {
      const id = newHandle("known")
      const actor = yield* activate("Identity", id)
      const other = yield* activate("Org", id)
      yield* actor.change(system, (write) =>
        Effect.as(insert(write, `Identity/${id}`), { value: undefined, state: 41 }),
      )
      yield* Effect.flip(actor.write(system, () => Effect.fail(new NotFound({ detail: "no" }))))
      expect(yield* actor.state).toBe(41)
      // Another kind of entity with the same id is a different entity.
      expect(yield* other.state).toBe(0)
    }),
  )

  it.effect("returns the settled state while a commit is visible to others but not yet in memory", () =>
    Effect.gen(function* () {
      const id = newHandle("unheard")
      const actor = yield* activate("Identity", id)
      const seen = yield* Deferred.make<void>()
      const committed = yield* Deferred.make<void>()
      const change = yield* Effect.forkChild(
        actor.change(system, (write) =>
          insert(write, `Identity/${id}`).pipe(
            Effect.andThen(Deferred.succeed(seen, undefined)),
            Effect.andThen(Deferred.await(committed)),
            Effect.as({ value: undefined, state: 42 }),
          ),
        ),
      )
      yield* Deferred.await(seen)
      expect(yield* actor.state).toBe(0)
      const settled = yield* Effect.forkChild(actor.settled, { startImmediately: true })
      expect(settled.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(committed, undefined)
      expect(yield* Fiber.join(settled)).toBe(42)
      yield* Fiber.join(change)
      // A failed change does not delay the settled state.
      yield* Effect.flip(actor.change(system, () => Effect.fail(new NotFound({ detail: "no" }))))
      expect(yield* actor.settled).toBe(42)
    }),
  )

  it.effect("drops its state after an unknown outcome", () =>
    Effect.gen(function* () {
      const id = newHandle("doubtful")
      const actor = yield* activate("Identity", id)
      yield* actor.change(system, (write) =>
        Effect.as(insert(write, `Identity/${id}`), { value: undefined, state: 41 }),
      )
      yield* Effect.exit(actor.write(system, () => Effect.die(new Error("the answer never came"))))
      expect(yield* actor.state).toBe(1)
      // If the store did not respond in time, the statement may have been committed, so the actor loads its state again.
      yield* actor.change(system, (write) =>
        Effect.as(insert(write, `Identity/${id}`), { value: undefined, state: 41 }),
      )
      const late = new Unavailable({ detail: "The database did not answer in time.", retry_after_seconds: 1 })
      yield* Effect.flip(actor.write(system, () => Effect.fail(late)))
      expect(yield* actor.state).toBe(2)
    }),
  )

  for (const [how, put] of [
    ["of its own", insert],
    ["that several actors share", insertTogether],
  ] as const) {
    it.effect(
      `is claimed by another process only after a statement ${how} has ended, whose result the claim reads`,
      () =>
        Effect.gen(function* () {
          const sql = yield* Stores.Writes
          const [id, canonical] = [newHandle("begun"), randomUUID()]
          const [old, present] = [yield* activate("Identity", id), yield* activate("Identity", id)]
          expect(yield* old.state).toBe(0)
          const waiting = (query: string) =>
            Effect.map(
              sql<{ waits: boolean }>`
            select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
              and query like ${`%${query}%`}) as waits`,
              ([row]) => row!.waits,
            )
          // The write has checked its fence, and waits for a row that another transaction inserts and takes back.
          const [held, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const other = sql`insert into handle (canonical, handle, org_id, registered_at) values (${canonical}, 'x', ${randomUUID()}, now())`
          const blocking = Effect.all([
            other,
            Deferred.succeed(held, undefined),
            Deferred.await(ended),
            Effect.die("undo"),
          ])
          const blocker = yield* Effect.forkChild(Effect.exit(sql.withTransaction(blocking)))
          yield* Deferred.await(held)
          const write = yield* Effect.forkChild(old.write(system, (fenced) => put(fenced, `Identity/${id}`, canonical)))
          yield* waitUntil(waiting("insert into handle"), (waits) => waits, 0)
          const claim = yield* Effect.forkChild(present.state)
          yield* waitUntil(
            Effect.map(waiting("insert into actor (kind"), (waits) => waits || claim.pollUnsafe() !== undefined),
            (isDecided) => isDecided,
            0,
          )
          yield* Deferred.succeed(ended, undefined)
          yield* Fiber.join(blocker)
          yield* Fiber.join(write)
          expect(yield* Fiber.join(claim)).toBe(1)
        }),
    )
  }

  it.effect("is claimed once by concurrent first messages", () =>
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      const id = newHandle("first")
      const actor = yield* activate("Identity", id)
      yield* Effect.all([actor.state, actor.state, actor.settled], { concurrency: "unbounded" })
      expect(yield* sql`select epoch from actor where kind = 'Identity' and id = ${id}`).toEqual([{ epoch: 1 }])
    }),
  )

  it.effect("keeps what it has loaded since, whatever an earlier change still returns", () =>
    Effect.gen(function* () {
      const id = newHandle("reloaded")
      const actor = yield* activate("Identity", id)
      const [made, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const change = yield* Effect.forkChild(
        actor.change(system, (write) =>
          insert(write, `Identity/${id}`).pipe(
            Effect.andThen(Deferred.succeed(made, undefined)),
            Effect.andThen(Deferred.await(ended)),
            Effect.as({ value: "changed", state: 42 }),
          ),
        ),
      )
      yield* Deferred.await(made)
      yield* Effect.exit(actor.write(system, () => Effect.die("the answer never came")))
      expect(yield* actor.state).toBe(1)
      yield* Deferred.succeed(ended, undefined)
      expect(yield* Fiber.join(change)).toBe("changed")
      expect(yield* actor.state).toBe(1)
      yield* actor.write(system, (write) => insert(write, `Identity/${id}`))
      // Nor does a write of the earlier claim, whose outcome stays unknown, end the claim that was made since.
      const [begun, lost] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const late = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(lost))
      const doubtful = yield* Effect.forkChild(
        Effect.exit(actor.write(system, () => Effect.andThen(late, Effect.die("the answer never came")))),
      )
      yield* Deferred.await(begun)
      yield* Effect.exit(actor.write(system, () => Effect.die("the answer never came")))
      const epoch = Effect.andThen(
        actor.state,
        Effect.flatMap(Stores.Writes, (sql) => sql`select epoch from actor where kind = 'Identity' and id = ${id}`),
      )
      const before = yield* epoch
      yield* Deferred.succeed(lost, undefined)
      yield* Fiber.join(doubtful)
      expect(yield* epoch).toEqual(before)
    }),
  )

  it.effect("reports each commit with both states, and the deliveries that it queued", () =>
    Effect.gen(function* () {
      const told: Array<unknown> = []
      const actor = yield* activate("Identity", newHandle("told"), {
        due: (source) => void told.push(source),
        committed: (...states) => void told.push(states),
      })
      yield* actor.change(system, () => Effect.succeed({ value: 1, state: 5 }))
      yield* actor.change(system, () => Effect.succeed({ value: 1 }))
      expect(yield* actor.state).toBe(5)
      yield* Effect.exit(actor.change(system, () => Effect.fail(new NotFound({ detail: "no" }))))
      const queueing = (many: number) =>
        actor.write(system, (write) =>
          commit(write, write.sql`queued as (select from fence, generate_series(1, ${many}::int))`, {
            raises: true,
            columns: write.sql`7 as seven`,
          }),
        )
      expect(yield* queueing(0)).toMatchObject({ seven: 7 })
      yield* queueing(1)
      expect(told).toEqual([[0, 5], [5, 5], [5, 5], "deliveries", [5, 5]])
    }),
  )

  it.effect("reads a part of its entity once, and again after an unknown outcome", () =>
    Effect.gen(function* () {
      const actor = yield* activate("Identity", newHandle("recalled"))
      let reads = 0
      const read = Effect.sync(() => ++reads)
      const recall = actor.write(system, (write) => recalled(write, "part", read))
      expect([yield* recall, yield* recall]).toEqual([1, 1])
      yield* actor.write(system, (write) => Effect.sync(() => learned(write, "part", 7)))
      expect(yield* recall).toBe(7)
      yield* Effect.exit(actor.write(system, () => Effect.die("the answer never came")))
      expect(yield* recall).toBe(2)
    }),
  )

  it.effect("counts each write by its outcome", () =>
    Effect.gen(function* () {
      const counted = Effect.map(Metric.snapshot, (metrics) =>
        Object.fromEntries(
          metrics.flatMap((one) =>
            one.id === "svc_actor_writes_total" && one.attributes?.["kind"] === "Identity"
              ? [[one.attributes["outcome"]!, Number((one.state as { readonly count: number | bigint }).count)]]
              : [],
          ),
        ),
      )
      const gained = Effect.fnUntraced(function* (write: Effect.Effect<unknown, unknown>) {
        const before = yield* counted
        yield* Effect.exit(write)
        return Object.entries(yield* counted).filter(([outcome, n]) => n !== before[outcome])
      })
      const id = newHandle("counted")
      const old = yield* activate("Identity", id)
      const write = (statement: (write: Fenced) => Effect.Effect<unknown, unknown>) => old.write(system, statement)
      const one = (outcome: string, before: number) => [[outcome, before + 1]]
      const now = yield* counted
      expect(yield* gained(write((fenced) => insert(fenced, `Identity/${id}`)))).toEqual(one("done", now["done"]!))
      const no = new NotFound({ detail: "no" })
      expect(yield* gained(write(() => Effect.fail(no)))).toEqual(one("refused", now["refused"]!))
      expect(yield* gained(write(() => Effect.die("never")))).toEqual(one("doubt", now["doubt"]!))
      yield* old.state
      yield* (yield* activate("Identity", id)).state
      const lost = gained(write((fenced) => insert(fenced, `Identity/${id}`)))
      expect(yield* lost).toEqual(one("fence_lost", now["fence_lost"]!))
    }),
  )

  it.effect("passes each write its time and initiator", () =>
    Effect.gen(function* () {
      const actor = yield* activate("Identity", newHandle("asked"))
      const by = { kind: "admin_key", credentialId: "k", requestId: "req_1" } as const
      const seen = yield* actor.write(by, (write) => Effect.succeed(write))
      expect(seen.by).toEqual(by)
      expect(seen.at.getTime()).toBe(yield* Clock.currentTimeMillis)
    }),
  )
})
