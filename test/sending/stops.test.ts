/**
 * Stopping outgoing mail across processes: what a former owner of the Identity may still send if it was suspended before DATA and does not
 * know of the stop (docs/crash-matrix.md "Mail out").
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { awaitFiber, identityOf, makeOrg, waitUntil } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"
import { recordingTransport } from "../harness/Transport.ts"
import { insertAccepted } from "./AcceptedMessages.ts"

/** Suspends an attempt of the first process at the given point, and returns what it may do after it resumes. */
const frozenAttempt = Effect.fnUntraced(function* (handle: string, place: "before asking" | "before DATA") {
  const frozen = yield* Deferred.make<() => boolean>()
  const thawed = yield* Deferred.make<void>()
  const after = yield* Deferred.make<{ readonly begins: boolean; readonly mayLeave: boolean }>()
  const transport = recordingTransport()
  transport.answering.outside = ({ recipients, mayLeave, isPermitted }) =>
    Effect.gen(function* () {
      if (place === "before DATA") expect([yield* mayLeave, isPermitted()]).toEqual([true, true])
      yield* Deferred.succeed(frozen, isPermitted)
      yield* Deferred.await(thawed)
      const begins = isPermitted()
      yield* Deferred.succeed(after, { begins, mayLeave: yield* mayLeave })
      return recipients.map((recipient) => ({ recipient, state: "held" as const, reply: null }))
    })
  const first = yield* Layer.build(actorProcess(undefined, transport))
  const org_id = yield* makeOrg
  const id = yield* makeUuidV7
  yield* ask(Context.get(first, Identities).of(handle).Create({ org_id, identity_id: id, handle }))
  yield* waitUntil(identityOf(handle), (row) => row?.status === "ready")
  const { outbox } = yield* insertAccepted(id)
  yield* ask(Context.get(first, Identities).of(handle).Work(undefined, { discard: true }))
  const isFrozen = Effect.andThen(
    Effect.flatMap(Reads, (sql) => sql`select 1`),
    Deferred.isDone(frozen),
  )
  yield* waitUntil(isFrozen, (done) => done, "10 millis")
  const isPermitted = yield* Deferred.await(frozen)
  const second = yield* Layer.build(actorProcess())
  // Resumes the attempt even if the test fails, so that the test can end.
  yield* Effect.addFinalizer(() => Deferred.succeed(thawed, undefined))
  const stop = Effect.gen(function* () {
    const actor = Context.get(second, Identities).of(handle)
    const switched = actor.SwitchMail({ org_id, patch: { outgoing: "stopped" }, if_version: null })
    yield* yield* awaitFiber(yield* Effect.forkChild(ask(switched)), "1 millis")
  })
  const thaw = Effect.andThen(Deferred.succeed(thawed, undefined), Deferred.await(after))
  return { id, outbox, isPermitted, stop, thaw }
})

/** Returns permits that are still valid in the database. */
const permits = (handle: string) =>
  Effect.flatMap(
    Reads,
    (sql) => sql`select epoch from actor_permit where kind = 'Identity' and id = ${handle} and until > now()`,
  )

layer(sharedServices, { timeout: "60 seconds" })("a stop in another process", (it) => {
  for (const [place, handle] of [
    ["before DATA", "ada"],
    ["before asking", "bob"],
  ] as const) {
    it.effect(`is answered when an attempt that was frozen ${place} can no longer begin`, () =>
      Effect.gen(function* () {
        const attempt = yield* frozenAttempt(handle, place)
        // The lease granted a permit, which the other process must wait for.
        expect(yield* permits(handle)).toHaveLength(1)
        yield* attempt.stop
        expect(yield* permits(handle)).toEqual([])
        expect(attempt.isPermitted()).toBe(false)
        expect(yield* attempt.thaw).toEqual({ begins: false, mayLeave: false })
        // The message is queued again, and the attempt does not count.
        const row = Effect.flatMap(
          Reads,
          (sql) => sql<{ attempts: number; leased: boolean }>`
            select attempts, attempt_started_at is not null as leased from outbox where id = ${attempt.outbox}`,
        )
        const { value } = yield* waitUntil(row, ([found]) => found?.leased === false)
        expect(value).toEqual([{ attempts: 0, leased: false }])
      }),
    )
  }

  it.effect("does not wait for a process that returned its permit", () =>
    Effect.gen(function* () {
      const attempt = yield* frozenAttempt("cat", "before DATA")
      const sql = yield* Writes
      yield* sql`update actor_permit set until = now() + interval '1 hour' where id = 'cat'`
      const stop = yield* Effect.forkChild(attempt.stop)
      const stopped = sql`select from mailbox where identity_id = ${attempt.id} and stopped_at is not null`
      yield* waitUntil(stopped, (rows) => rows.length > 0, 0)
      expect(stop.pollUnsafe()).toBeUndefined()
      yield* sql`delete from actor_permit where id = 'cat'`
      yield* Fiber.join(stop)
      yield* attempt.thaw
    }),
  )

  it.effect("finds the permit of a stopped process returned", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const id = yield* makeUuidV7
      const transport = recordingTransport()
      yield* Effect.gen(function* () {
        const actor = (yield* Identities).of("dan")
        yield* ask(actor.Create({ org_id, identity_id: id, handle: "dan" }))
        yield* waitUntil(identityOf("dan"), (row) => row?.status === "ready")
        yield* insertAccepted(id)
        yield* ask(actor.Work(undefined, { discard: true }))
        const sent = Effect.flatMap(
          Reads,
          (sql) => sql`select from outgoing where identity_id = ${id} and status = 'done'`,
        )
        yield* waitUntil(sent, (rows) => rows.length > 0)
        expect(yield* permits("dan")).toHaveLength(1)
      }).pipe(Effect.provide(actorProcess(undefined, transport)))
      expect(yield* permits("dan")).toEqual([])
    }),
  )

  it.effect("waits for the attempt that a stopped process did not let end", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const id = yield* makeUuidV7
      const begun = yield* Deferred.make<void>()
      const transport = recordingTransport()
      transport.answering.outside = ({ mayLeave }) =>
        Effect.andThen(mayLeave, Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      const process = yield* Scope.make()
      const services = yield* Layer.buildWithScope(actorProcess(undefined, transport), process)
      const actor = Context.get(services, Identities).of("eve")
      yield* ask(actor.Create({ org_id, identity_id: id, handle: "eve" }))
      yield* waitUntil(identityOf("eve"), (row) => row?.status === "ready")
      yield* insertAccepted(id)
      yield* ask(actor.Work(undefined, { discard: true }))
      const hasBegun = Effect.andThen(permits("eve"), Deferred.isDone(begun))
      yield* waitUntil(hasBegun, (done) => done, "10 millis")
      const closing = yield* Effect.forkChild(Scope.close(process, Exit.void))
      yield* yield* awaitFiber(closing, "100 millis")
      const sql = yield* Reads
      expect(yield* sql`select from actor_permit where kind = 'Identity' and id = 'eve'`).toHaveLength(1)
    }),
  )
})
