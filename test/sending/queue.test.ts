/** The outbox of one Identity without a store: leases, the permit and the attempts in flight. */
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import {
  EnvelopeSender,
  InsideDelivery,
  MailTransport,
  type Transmission,
} from "@svc/cluster/mail/sending/MailTransport"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import { source } from "@svc/cluster/mail/sending/outbox/OutboxQueue"
import type { Leased } from "@svc/cluster/mail/sending/outbox/OutboxRecords"
import { SendingGate } from "@svc/cluster/mail/sending/outbox/SendingGate"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Layer, Scope } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"

const identity = { id: "0199c0de-0000-7000-8000-000000000001", orgId: "org", handle: "ada", dataKey: {} as never }
const away = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("away") }) })

const unusedWrites = Layer.succeed(Writes, (() => Effect.die("not used")) as never)

/** Returns the queue, a store and a transport that respond as the test says, and the calls that they received. */
const makeQueue = Effect.gen(function* () {
  const asked = {
    renewed: [] as Array<ReadonlyArray<string>>,
    returned: [] as Array<readonly [id: string, due: number]>,
    recorded: [] as Array<string>,
    handedBack: 0,
    /** Attempts that the gate knows as ended, changes shown in open pages, and Events with webhook deliveries. */
    ended: 0,
    shown: [] as Array<unknown>,
    raised: 0,
  }
  const store = { leased: [] as Array<Leased>, lost: [] as Array<Leased>, isAway: false }
  const sent = new Map<string, Transmission>()
  const accepted = new Map<string, Deferred.Deferred<void>>()
  const gate = {
    permit: { isShort: () => false },
    handBack: Effect.sync(() => void asked.handedBack++),
    enter: () => ({ mayLeave: Effect.succeed(true), isPermitted: () => true, end: () => void asked.ended++ }),
  }
  const layers = Layer.mergeAll(
    Layer.mock(Outbox, {
      lease: () => Effect.sync(() => ({ leased: store.leased.splice(0), due: null })),
      renew: (rows) =>
        Effect.suspend(() => {
          asked.renewed.push(rows.map(({ id }) => id))
          return store.isAway ? Effect.fail(away) : Effect.succeed(store.lost)
        }),
      record: (_, { id }) => Effect.sync(() => (asked.recorded.push(id), true)),
      giveBack: ((row: Leased, due: Date) =>
        Effect.sync(() => void asked.returned.push([row.id, due.getTime()]))) as never,
    }),
    Layer.succeed(SendingGate, { of: () => Effect.succeed(gate) } as never),
    Layer.succeed(MailTransport, {
      carries: { by: "direct" },
      send: (transmission) =>
        Effect.suspend(() => {
          sent.set(transmission.domain, transmission)
          const outcome = { recipient: transmission.recipients[0]!, state: "sent", reply: null } as const
          return Effect.as(Deferred.await(accepted.get(transmission.domain)!), [outcome])
        }),
    }),
    Layer.succeed(InsideDelivery, { domain: "mail.localhost", deliver: () => Effect.die("not used") }),
    Layer.succeed(EnvelopeSender, { of: () => "bounce@mail.localhost" }),
    Layer.succeed(ChangeFeed, {
      announce: () => {},
      changed: (_: string, change: unknown) => void asked.shown.push(change),
    } as never),
    unusedWrites,
  )
  const scope = yield* Scope.make()
  const queue = yield* source
    .make({ write: () => Effect.die("not used") } as never)
    .pipe(Effect.provide(layers), Scope.provide(scope))
  /** Starts an attempt, and returns its row, its permission and the acceptance by the other server. */
  const started = Effect.fnUntraced(function* (id: string) {
    const started_at = new Date(yield* Clock.currentTimeMillis)
    const addresses = [`ada@${id}`]
    const row: Leased = {
      id,
      message_id: identity.id,
      domain: id,
      attempts: 0,
      started_at,
      addresses,
      size: 0,
      raw: Buffer.of(),
    }
    store.leased.push(row)
    const acceptance = yield* Deferred.make<void>()
    accepted.set(id, acceptance)
    yield* queue.dispatch(
      identity,
      Effect.sync(() => void asked.raised++),
      Effect.void,
    )
    yield* settled
    return {
      row,
      mayLeave: sent.get(id)!.mayLeave,
      accept: Effect.andThen(Deferred.succeed(acceptance, undefined), settled),
    }
  })
  return { asked, store, started, leave: Scope.close(scope, Exit.void) }
})

/** Lets the attempts run as far as they can. */
const settled = Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))

describe("The outbox of an Identity", () => {
  it.effect(
    "renews the leases of its attempts, also after a renewal that failed and after a time without attempts",
    () =>
      Effect.gen(function* () {
        const { asked, store, started, leave } = yield* makeQueue
        const renew = TestClock.adjust(Timing.outboxRenew)
        const [one, two] = [yield* started("one.example"), yield* started("two.example")]
        const both = ["one.example", "two.example"]
        yield* renew
        store.isAway = true
        yield* renew
        store.isAway = false
        yield* renew
        expect(asked).toMatchObject({ renewed: [both, both, both], returned: [] })
        yield* two.accept
        yield* renew
        yield* one.accept
        yield* renew
        yield* renew
        expect(asked).toMatchObject({ renewed: [both, both, both, ["one.example"]], recorded: both.toReversed() })
        yield* started("late.example")
        yield* renew
        expect(asked.renewed.at(-1)).toEqual(["late.example"])
        yield* leave
      }),
  )

  it.effect("lets an attempt send within the margin of its lease, and later only with a new one", () =>
    Effect.gen(function* () {
      const { asked, store, started, leave } = yield* makeQueue
      const { row, mayLeave } = yield* started("one.example")
      const margin = Timing.outboxLeaseMillis - Timing.permitMillis
      store.isAway = true
      for (const round of ["leased", "renewed"]) {
        yield* TestClock.adjust(margin - 1)
        expect([round, yield* mayLeave]).toEqual([round, true])
        yield* TestClock.adjust(1)
        expect([round, yield* mayLeave]).toEqual([round, false])
        store.isAway = false
        expect([round, yield* mayLeave]).toEqual([round, true])
        store.isAway = true
      }
      yield* TestClock.adjust(margin)
      store.isAway = false
      store.lost.push(row)
      expect(yield* mayLeave).toBe(false)
      expect(asked.returned).toEqual([])
      yield* leave
    }),
  )

  it.effect("makes an interrupted attempt due immediately, and keeps its permit while an attempt is in flight", () =>
    Effect.gen(function* () {
      for (const isInFlight of [false, true]) {
        const { asked, started, leave } = yield* makeQueue
        const { accept } = yield* started("one.example")
        if (!isInFlight) yield* accept
        yield* TestClock.adjust("1 second")
        yield* leave
        yield* settled
        const now = yield* Clock.currentTimeMillis
        expect([asked.handedBack, asked.returned]).toEqual(isInFlight ? [0, [["one.example", now]]] : [1, []])
        const shown = isInFlight ? [] : [{ resource: "messages", handle: "ada" }]
        expect(asked).toMatchObject({ ended: 1, shown, raised: isInFlight ? 0 : 1 })
      }
    }),
  )
})

describe("The sending gate of an Identity", () => {
  it.effect("exists until the last activation of its actor ends", () =>
    Effect.gen(function* () {
      const { of } = yield* SendingGate
      const opened = Effect.fnUntraced(function* () {
        const scope = yield* Scope.make()
        const { permit } = yield* Scope.provide(of("one"), scope)
        return { permit, close: Scope.close(scope, Exit.void) }
      })
      const [first, second] = [yield* opened(), yield* opened()]
      yield* first.close
      // A stop must still find the attempts of the second activation.
      const third = yield* opened()
      expect(third.permit).toBe(second.permit)
      yield* second.close
      yield* third.close
      const fourth = yield* opened()
      expect(fourth.permit).not.toBe(third.permit)
      yield* fourth.close
    }).pipe(Effect.provide(SendingGate.layer), Effect.provide(unusedWrites)),
  )
})
