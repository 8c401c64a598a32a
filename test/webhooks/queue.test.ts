/** The delivery queue of one Identity without a store: what it leases, reclaims and reports while attempts are in flight. */
import { GuardedClient, RequestFailed } from "@svc/cluster/net/GuardedClient"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Deliveries, type Leased, type Outcome } from "@svc/cluster/webhooks/Deliveries"
import { source } from "@svc/cluster/webhooks/DeliveryQueue"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { countsGrow, countsOf } from "../harness/Counters.ts"

const identity = { id: "0199c0de-0000-7000-8000-000000000001", orgId: "org", handle: "ada", dataKey: {} as never }

interface Responded {
  readonly durationMs: number
  readonly statusCode: number
  readonly text: string | null
}

/** Returns the queue, a store and a client that respond as the test says, and the calls that they received. */
const makeQueue = Effect.gen(function* () {
  const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))
  const asked = {
    taken: [] as Array<unknown>,
    looks: 0,
    recorded: [] as Array<readonly [string, Outcome]>,
    secrets: 0,
    requests: [] as Array<Record<string, string>>,
    changed: 0,
  }
  const store = { leased: [] as Array<Leased>, due: null as Date | null, abandoned: [] as Array<Leased> }
  const responses = new Map<string, Deferred.Deferred<Responded, RequestFailed>>()
  const layers = Layer.mergeAll(
    Layer.mock(Deliveries, {
      lease: ({ taken }) =>
        Effect.sync(() => {
          asked.taken.push(structuredClone(Object.fromEntries(taken)))
          const leased = store.leased.splice(0)
          return { leased, due: leased.length > 0 ? null : store.due }
        }),
      abandoned: () => Effect.sync(() => (asked.looks++, store.abandoned.splice(0))),
      record: (_, { id }, outcome) => Effect.sync(() => void asked.recorded.push([id, outcome])),
    }),
    Layer.mock(GuardedClient, {
      post: (url, { headers }) =>
        Effect.suspend(() => {
          asked.requests.push(headers)
          return Deferred.await(responses.get(url)!)
        }),
    }),
    Layer.succeed(Sealing, { open: (_: unknown, __: unknown, sealed: Uint8Array) => Effect.succeed(sealed) } as never),
    Layer.succeed(Writes, (() =>
      Effect.map(now, (at) => {
        asked.secrets++
        const secret = (text: string, retires_at: Date | null) => ({
          id: text,
          sealed: new TextEncoder().encode(`whsec_${text}`),
          retires_at,
        })
        return [secret("current", null), secret("retiring", new Date(at.getTime() + 1_000))]
      })) as never),
  )
  const queue = yield* source.make({ write: () => Effect.die("not used") } as never).pipe(Effect.provide(layers))
  const ours = Effect.sync(() => void asked.changed++)
  const dispatch = Effect.suspend(() => queue.dispatch(identity, Effect.die("another source"), ours))
  /** Queues a delivery, and returns what responds to it. */
  const queued = Effect.fnUntraced(function* (id: string, parts: Partial<Leased> = {}) {
    const at = yield* now
    const url = `https://receiver.example/${id}`
    const delivery: Leased = {
      id,
      webhook_id: "hook",
      identity_id: identity.id,
      url,
      first: true,
      replay: false,
      attempts: [],
      started_at: at,
      event_id: identity.id,
      event_type: "mail.stopped",
      event_data: {},
      event_created_at: at,
      secret_id: "current",
      creator_kind: null,
      creator_end: null,
      creator_scopes: null,
      ...parts,
    }
    store.leased.push(delivery)
    const response = yield* Deferred.make<Responded, RequestFailed>()
    responses.set(url, response)
    const respond = (statusCode: number) => Deferred.succeed(response, { durationMs: 5, statusCode, text: null })
    const fail = Deferred.fail(response, new RequestFailed({ error: "dns", durationMs: 3 }))
    const die = Deferred.die(response, new Error("broken"))
    return { delivery, respond, fail, die }
  })
  return { asked, dispatch, queue, queued, store, now }
})

/** Lets the attempts run as far as they can. */
const settled = Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))

describe("a delivery queue", () => {
  it.effect("counts the attempts in flight of each Webhook, and wakes the actor when a target has responded", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queue, queued, store, now } = yield* makeQueue
      const [first, retry] = [yield* queued("first"), yield* queued("retry", { first: false })]
      const other = yield* queued("other", { webhook_id: "other" })
      const counted = countsOf("svc_webhook_attempts_total", "outcome", "kind")
      const before = yield* counted
      expect([yield* dispatch, queue.isBusy()]).toEqual([true, true])
      store.due = new Date((yield* now).getTime() + 1)
      expect([yield* dispatch, yield* queue.nextDue(identity)]).toEqual([false, store.due])
      yield* settled
      yield* first.respond(200)
      yield* settled
      // A delivered Event makes nothing due, so the actor only learns that the target has a free place.
      expect(asked.changed).toBe(1)
      yield* dispatch
      yield* retry.respond(500)
      yield* settled
      // The Event that was not delivered is due again after its outcome was recorded.
      expect([asked.changed, queue.isBusy()]).toEqual([3, true])
      yield* dispatch
      yield* other.respond(200)
      yield* settled
      // The last attempt also reports that the queue is idle.
      expect([asked.changed, queue.isBusy()]).toEqual([5, false])
      yield* dispatch
      const others = { other: { first: 1, retry: 0 } }
      expect(asked.taken).toEqual([
        {},
        { hook: { first: 1, retry: 1 }, ...others },
        { hook: { first: 0, retry: 1 }, ...others },
        others,
        {},
      ])
      yield* countsGrow(counted, before, { "delivered first": 2, "refused retry": 1 })
    }).pipe(Effect.scoped),
  )

  it.effect("looks for attempts of crashed processes every five seconds while others are in flight", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queue, queued, store, now } = yield* makeQueue
      store.due = yield* now
      // Nothing is in flight: a delivery that is due but was not leased belongs to a crashed process.
      expect([yield* dispatch, yield* dispatch, asked.looks]).toEqual([false, false, 2])
      const hanging = yield* queued("hanging")
      expect(yield* dispatch).toBe(true)
      // The last query leased a delivery, so the time of the next one is unknown.
      expect(yield* queue.nextDue(identity)).toBeNull()
      yield* TestClock.adjust(Timing.abandonedLookMillis - 1)
      expect([yield* dispatch, asked.looks]).toEqual([false, 2])
      yield* TestClock.adjust(1)
      const { delivery } = yield* queued("abandoned")
      store.abandoned.push(...store.leased.splice(0))
      yield* TestClock.adjust(10)
      expect([yield* dispatch, asked.looks]).toEqual([true, 3])
      const outcome = { durationMs: 10, statusCode: null, error: "interrupted", text: null }
      expect(asked.recorded).toEqual([[delivery.id, outcome]])
      yield* TestClock.adjust(Timing.abandonedLookMillis - 1)
      expect([yield* dispatch, asked.looks]).toEqual([false, 3])
      yield* hanging.respond(200)
    }).pipe(Effect.scoped),
  )

  it.effect("reports no work while nothing is due", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queue, store, now } = yield* makeQueue
      expect([yield* dispatch, yield* queue.nextDue(identity)]).toEqual([false, null])
      store.due = new Date((yield* now).getTime() + 1)
      expect([yield* dispatch, yield* queue.nextDue(identity), asked.looks]).toEqual([false, store.due, 0])
    }).pipe(Effect.scoped),
  )

  it.effect("reads the signing secrets again only after a rotation, and signs with none that has retired", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queued } = yield* makeQueue
      for (const [id, secret_id] of [
        ["one", "a"],
        ["two", "a"],
        ["three", "b"],
        ["four", "b"],
      ] as const) {
        const { respond } = yield* queued(id, { secret_id })
        yield* dispatch
        yield* respond(200)
        yield* settled
        if (id === "three") yield* TestClock.adjust("1 second")
      }
      expect(asked.requests.map((headers) => headers["webhook-signature"]!.split(" ").length)).toEqual([2, 2, 2, 1])
      expect(asked.requests.map((headers) => headers["content-type"])).toEqual(Array(4).fill("application/json"))
      expect(asked.secrets).toBe(2)
    }).pipe(Effect.scoped),
  )

  it.effect("waits on shutdown for attempts in flight, and records one whose request fails", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queue, queued } = yield* makeQueue
      const { fail } = yield* queued("failing")
      yield* dispatch
      const leaving = yield* Effect.forkChild(queue.settle)
      yield* settled
      expect(leaving.pollUnsafe()).toBeUndefined()
      yield* fail
      yield* Fiber.join(leaving)
      const outcome = { durationMs: 3, statusCode: null, error: "dns", text: null }
      expect(asked.recorded).toEqual([["failing", outcome]])
    }).pipe(Effect.scoped),
  )

  it.effect("frees the place of an attempt that ends in a defect, which keeps its lease", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queue, queued } = yield* makeQueue
      const { die } = yield* queued("broken")
      yield* dispatch
      yield* die
      yield* settled
      yield* dispatch
      expect([asked.taken, asked.recorded, queue.isBusy()]).toEqual([[{}, {}], [], false])
    }).pipe(Effect.scoped),
  )

  it.effect("sends nothing that the creator of the Webhook may not read, and counts no attempt", () =>
    Effect.gen(function* () {
      const { asked, dispatch, queue, queued } = yield* makeQueue
      const counted = countsOf("svc_webhook_attempts_total", "outcome", "kind")
      const before = yield* counted
      yield* queued("withheld", { creator_kind: "admin_key", creator_end: "creator_expired", creator_scopes: "*" })
      yield* dispatch
      yield* settled
      const outcome = { durationMs: 0, statusCode: null, error: "creator_expired", text: null, withheld: true }
      expect([asked.requests, asked.recorded, queue.isBusy()]).toEqual([[], [["withheld", outcome]], false])
      expect(yield* counted).toEqual(before)
    }).pipe(Effect.scoped),
  )
})
