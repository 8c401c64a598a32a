/** Idempotency records, with a test clock. */
import { randomBytes } from "node:crypto"
import { IdempotencyRecords, type Scope, type StoredAnswer } from "@svc/cluster/idempotency/IdempotencyRecords"
import { sha256 } from "@svc/cluster/credentials/CredentialMint"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { eventually } from "../harness/Service.ts"
import { setClockToNow, storesLayer } from "../harness/Stores.ts"

const dayMillis = 24 * 60 * 60 * 1000

/** Statements that wait for a lock of another one. */
const waits = (sql: Writes["Service"]) =>
  Effect.map(
    sql<{ many: number }>`
      select count(*)::int as many from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%idempotency_record%' and datname = current_database()`,
    ([row]) => row!.many,
  )

const answer: StoredAnswer = { status: 202, headers: { location: "/here" }, body: "{}" }

/** A key of a new credential. */
const fresh = Effect.gen(function* () {
  yield* setClockToNow
  const records = yield* IdempotencyRecords
  const scope: Scope = { credentialId: yield* makeUuidV7, operation: "POST /api/identities", key: "k" }
  const claim = (request = "one", part: Partial<Scope> = {}) => records.claim({ ...scope, ...part }, request)
  const commandOf = Effect.fnUntraced(function* (claimed: ReturnType<typeof claim>) {
    const found = yield* claimed
    if (found._tag !== "Fresh") throw new Error(`was answered: ${JSON.stringify(found)}`)
    return found.commandId
  })
  return { scope, claim, commandOf, settle: records.settle(scope, answer), release: records.release(scope) }
})

layer(storesLayer)("Idempotency record", (it) => {
  it.effect("is stored for a path of any length, and for that path alone", () =>
    Effect.gen(function* () {
      const { claim, commandOf } = yield* fresh
      // Incompressible text: an index entry has room for less than 3,000 bytes.
      const long = randomBytes(6000).toString("hex")
      const first = yield* commandOf(claim("one", { operation: `POST /api/a?x=${long}`, key: "k".repeat(255) }))
      const other = yield* commandOf(claim("one", { operation: `POST /api/b?x=${long}`, key: "k".repeat(255) }))
      expect(other).not.toBe(first)
      const again = yield* Effect.flip(claim("two", { operation: `POST /api/a?x=${long}`, key: "k".repeat(255) }))
      expect(again._tag).toBe("idempotency_key_reused")
    }),
  )

  it.effect("is returned for a day and then replaced", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle, scope } = yield* fresh
      const sql = yield* Writes
      const stored = sql<{ fingerprint: Uint8Array; headers: unknown; body: string | null }>`
        select fingerprint, headers, body from idempotency_record where credential_id = ${scope.credentialId}`
      const first = yield* commandOf(claim())
      // A hash without a key would reveal a short secret in the body.
      expect(Buffer.from((yield* stored)[0]!.fingerprint)).not.toEqual(Buffer.from(sha256("one")))
      yield* settle
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
      yield* TestClock.adjust("23 hours")
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
      yield* TestClock.adjust("1 hour")
      const again = yield* commandOf(claim("another request by now"))
      expect(again).not.toBe(first)
      // The record belongs to the new request alone, and does not keep the old response.
      expect(yield* stored).toMatchObject([{ headers: null, body: null }])
      expect(yield* Effect.flip(claim("another request by now"))).toMatchObject({
        code: "idempotency_key_in_progress",
        retry_after_seconds: 1,
      })
      expect(yield* Effect.flip(claim("one"))).toMatchObject({ code: "idempotency_key_reused" })
    }),
  )

  it.effect("belongs to one request of one credential at one path", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle } = yield* fresh
      const first = yield* commandOf(claim())
      const others = [{ key: "other" }, { operation: "POST /api/keys" }, { credentialId: yield* makeUuidV7 }]
      for (const other of others) expect(yield* commandOf(claim("one", other))).not.toBe(first)
      expect(yield* Effect.flip(claim("two"))).toMatchObject({ code: "idempotency_key_reused" })
      yield* settle
      expect(yield* Effect.flip(claim("two"))).toMatchObject({ code: "idempotency_key_reused" })
    }),
  )

  it.effect("is started by one of many concurrent requests", () =>
    Effect.gen(function* () {
      const { claim } = yield* fresh
      const claims = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.result(claim()), {
        concurrency: "unbounded",
      })
      const codes = claims.map((one) => (one._tag === "Success" ? one.success._tag : one.failure.code))
      expect(codes.toSorted()).toEqual(["Fresh", ...Array<string>(19).fill("idempotency_key_in_progress")])
    }),
  )

  it.effect("is not claimed by a waiter whose predecessor commits", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle, scope } = yield* fresh
      const sql = yield* Writes
      const ours = sql`credential_id = ${scope.credentialId}::uuid`
      /** Claims while an open transaction creates or restarts the record, which commits once the claim waits for it. */
      const waiting = Effect.fnUntraced(function* (took: Effect.Effect<unknown, unknown>) {
        const taken = yield* Deferred.make<void>()
        const awaited = Effect.promise(() =>
          eventually(
            () => Effect.runPromise(Effect.orDie(waits(sql))),
            (many) => many > 0,
          ),
        )
        const other = yield* Effect.forkChild(
          sql.withTransaction(took.pipe(Effect.andThen(Deferred.succeed(taken, undefined)), Effect.andThen(awaited))),
        )
        yield* Deferred.await(taken)
        const refused = yield* Effect.flip(claim())
        yield* Fiber.join(other)
        return refused
      })
      const started = new Date(yield* Clock.currentTimeMillis)
      const made = sql`insert into idempotency_record (credential_id, operation, key, fingerprint, command_id, started_at)
        values (${scope.credentialId}, ${scope.operation}, ${scope.key}, ${sha256("one")}, ${yield* makeUuidV7}, ${started})`
      expect(yield* waiting(made)).toMatchObject({ code: "idempotency_key_in_progress" })
      yield* settle
      yield* sql`update idempotency_record set started_at = ${new Date(started.getTime() - 2 * dayMillis)} where ${ours}`
      // A record restarted after a day does not return its old response.
      const anew = sql`update idempotency_record set started_at = ${started}, status = null where ${ours}`
      expect(yield* waiting(anew)).toMatchObject({ code: "idempotency_key_in_progress" })
      expect(yield* Effect.flip(commandOf(claim()))).toMatchObject({ code: "idempotency_key_in_progress" })
    }),
  )

  it.effect("of an interrupted request resumes as the same command after a minute", () =>
    Effect.gen(function* () {
      const { claim, commandOf, settle } = yield* fresh
      const first = yield* commandOf(claim())
      expect(yield* Effect.flip(claim())).toMatchObject({ code: "idempotency_key_in_progress", agent_hint: "wait" })
      yield* TestClock.adjust("1 minute")
      expect(yield* Effect.flip(claim("two"))).toMatchObject({ code: "idempotency_key_reused" })
      expect(yield* commandOf(claim())).toBe(first)
      // One request resumes it.
      expect(yield* Effect.flip(claim())).toMatchObject({ code: "idempotency_key_in_progress" })
      yield* settle
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
    }),
  )

  it.effect("keeps its response whatever a slow first request still reports", () =>
    Effect.gen(function* () {
      const { scope, claim, settle, release } = yield* fresh
      const records = yield* IdempotencyRecords
      yield* claim()
      yield* TestClock.adjust(Timing.idempotencyAbandonedMillis)
      yield* claim()
      yield* settle
      for (const late of [records.settle(scope, { ...answer, status: 409 }), release, records.forget(scope)]) {
        yield* late
        // The response of an equal tool call is kept for a minute only.
        expect(yield* records.claim(scope, "one", Timing.equalCallMillis)).toEqual({ _tag: "Answered", answer })
      }
    }),
  )

  it.effect("of one operation is not decided by another operation with the same key", () =>
    Effect.gen(function* () {
      const { claim, settle } = yield* fresh
      const other = claim("one", { operation: "POST /api/keys" })
      yield* claim()
      yield* other
      yield* settle
      expect(yield* claim()).toEqual({ _tag: "Answered", answer })
      expect(yield* Effect.flip(other)).toMatchObject({ code: "idempotency_key_in_progress" })
    }),
  )

  it.effect("of a request that changed nothing is free for any request, and no other record is", () =>
    Effect.gen(function* () {
      const { claim, commandOf, scope } = yield* fresh
      const other = { operation: "POST /api/keys" }
      const first = yield* commandOf(claim())
      yield* commandOf(claim("one", other))
      yield* (yield* IdempotencyRecords).forget(scope)
      expect(yield* Effect.flip(claim("two", other))).toMatchObject({ code: "idempotency_key_reused" })
      expect(yield* commandOf(claim("two"))).not.toBe(first)
    }),
  )

  it.effect("of an undecided request is free immediately for the same command, and no other record is", () =>
    Effect.gen(function* () {
      const { claim, commandOf, release } = yield* fresh
      const other = claim("one", { key: "other" })
      yield* commandOf(other)
      const first = yield* commandOf(claim())
      yield* release
      expect(yield* commandOf(claim())).toBe(first)
      expect(yield* Effect.flip(other)).toMatchObject({ code: "idempotency_key_in_progress" })
    }),
  )
})
