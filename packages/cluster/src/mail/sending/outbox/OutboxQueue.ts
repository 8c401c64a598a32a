/**
 * Background work of an actor that sends queued mail of its Identity. It leases due rows, passes them to the internal
 * delivery or the transport, renews the leases meanwhile and records the outcomes. The mail status is checked when a
 * row is leased, and again right before DATA.
 */
import { system } from "@svc/domain/account/Initiator"
import { toPublic } from "@svc/domain/Ids"
import type { Moved } from "@svc/domain/actor/Protocol"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Effect, type Fiber, FiberSet, Scope, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { OwnIdentity } from "../../../actor/Write.ts"
import { ChangeFeed } from "../../../feed/ChangeFeed.ts"
import { canonical } from "@svc/domain/handles/Handle"
import { Writes, Unhurried } from "../../../store/Database.ts"
import { Timing } from "../../../Timing.ts"
import * as Leasing from "../../../work/Leasing.ts"
import type { Running, Source } from "../../../work/Source.ts"
import { inSlices } from "../../MessageContent.ts"
import { EnvelopeSender, InsideDelivery, MailTransport, type Outcome, type Transmission } from "../MailTransport.ts"
import { type Lease, Outbox, overdue } from "./Outbox.ts"
import type { Leased } from "./OutboxRecords.ts"
import { type Gate, SendingGate } from "./SendingGate.ts"

type Needs = ChangeFeed | EnvelopeSender | InsideDelivery | MailTransport | Outbox | SendingGate | Writes

/** Maximum concurrent attempts per Identity. */
const places = 4

const pause = Effect.sleep(Timing.outboxRenew)

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

export const source: Source<OwnIdentity, Needs> = {
  name: "outbox",
  overdue,
  make: Effect.fnUntraced(function* (writing) {
    const sql = yield* Writes
    const outbox = yield* Outbox
    const feed = yield* ChangeFeed
    const gates = yield* SendingGate
    const transport = yield* MailTransport
    const inside = yield* InsideDelivery
    const sender = yield* EnvelopeSender
    const leasing = yield* Leasing.make
    const attempts = yield* FiberSet.make<void, unknown>()
    const underWay = new Map<Leased, Fiber.Fiber<void, unknown> | undefined>()
    /** When each lease was renewed last. */
    const renewedAt = new WeakMap<Leased, Date>()
    const scope = yield* Effect.scope
    let gate: Gate | undefined
    let isRenewing = false
    /** When the next row is due, according to the last query that leased no row. */
    let due: Date | null = null
    /** Whether more rows may be due than could be leased. */
    let isMore = false

    /** Returns the bytes of the message, identical in every attempt. */
    const contentOf = (leased: Leased) =>
      leased.raw !== null
        ? Effect.succeed(leased.raw)
        : inSlices(
            leased.size,
            (from, count) => sql<{ slice: Uint8Array }>`
              select substring(raw from ${from}::int for ${count}::int) as slice from message_content
              where message_id = ${leased.message_id}`,
          )

    const record = (identity: OwnIdentity, leased: Leased, outcomes: ReadonlyArray<Outcome>) =>
      Effect.flatMap(now, (at) =>
        Leasing.recorded(
          Effect.tap(outbox.record(identity, leased, outcomes, at), () =>
            Effect.sync(() => {
              feed.announce({ org: identity.orgId, identity: identity.id })
              feed.changed(identity.orgId, { resource: "messages", handle: identity.handle })
            }),
          ),
        ),
      )

    /** Renews leases and returns the rows whose lease another attempt holds now. */
    const renew = Effect.fnUntraced(function* (rows: ReadonlyArray<Leased>) {
      const at = yield* now
      const lost = yield* outbox.renew(rows, at)
      for (const row of rows) if (!lost.includes(row)) renewedAt.set(row, at)
      return lost
    })

    /**
     * Whether an attempt still holds its lease, and nobody else can take it while a permit is valid. A permit is that of
     * the Identity's actor, so it says nothing about the lease of a process that was suspended and has leased the row again.
     */
    const holdsLease = Effect.fnUntraced(function* (leased: Leased) {
      const age = (yield* now).getTime() - (renewedAt.get(leased) ?? leased.started_at).getTime()
      if (age < Timing.outboxLeaseMillis - Timing.permitMillis) return true
      return (yield* Effect.orElseSucceed(renew([leased]), () => [leased])).length === 0
    })

    /** Makes an attempt and returns its outcomes, or undefined if nothing was sent and there is nothing to record. */
    const transmit = Effect.fnUntraced(function* (identity: OwnIdentity, leased: Leased, gate: Gate) {
      if (leased.addresses.length === 0) return []
      const isInside = leased.domain === inside.domain
      if (!isInside && transport.carries.by === "none") {
        const next = new Date((yield* now).getTime() + Timing.outboxHeldMillis)
        yield* outbox.giveBack(leased, next, transport.carries.reason)
        return undefined
      }
      const content = yield* contentOf(leased)
      // The message was deleted meanwhile, and its rows with it.
      if (content === undefined) return undefined
      const passage = gate.enter(leased, writing)
      const transmission: Transmission = {
        id: toPublic("msg_", leased.message_id),
        envelopeFrom: sender.of({
          messageId: leased.message_id,
          outboxId: leased.id,
          mailbox: canonical(identity.handle),
        }),
        recipients: leased.addresses,
        domain: leased.domain,
        content,
        mayLeave: Effect.flatMap(holdsLease(leased), (holds) => (holds ? passage.mayLeave : Effect.succeed(false))),
        isPermitted: passage.isPermitted,
      }
      const outcomes = yield* (isInside ? inside.deliver(transmission) : transport.send(transmission)).pipe(
        Effect.ensuring(Effect.sync(passage.end)),
      )
      if (outcomes.every(({ state }) => state === "held")) {
        // Outgoing mail was stopped meanwhile; the row is not due until it is started again.
        yield* outbox.giveBack(leased, new Date((yield* now).getTime() + Timing.busyLookMillis), null)
        return undefined
      }
      return outcomes
    })

    /**
     * Renews leases while attempts run. An attempt that lost its lease is interrupted, since it may no longer record an
     * outcome.
     */
    const renewing = Effect.gen(function* () {
      for (yield* pause; underWay.size > 0; yield* pause) {
        const lost = yield* Effect.orElseSucceed(renew([...underWay.keys()]), () => [])
        for (const row of lost) underWay.get(row)?.interruptUnsafe()
      }
      // No other fiber runs between the check and this line, so a later attempt starts the renewal again.
      isRenewing = false
    }).pipe(Effect.onError(() => Effect.sync(() => void (isRenewing = false))))

    const attempt = (identity: OwnIdentity, leased: Leased, gate: Gate, raised: Effect.Effect<void>) =>
      transmit(identity, leased, gate).pipe(
        // A shutdown interrupted the attempt: the row is due again immediately, with the same bytes. A shutdown after it, while
        // its outcome is recorded, leaves the row leased, since its recipients may have the message.
        Effect.onInterrupt(() => Effect.ignore(Effect.flatMap(now, (at) => outbox.giveBack(leased, at, null)))),
        Effect.flatMap((outcomes) =>
          outcomes === undefined ? Effect.succeed(false) : record(identity, leased, outcomes),
        ),
        // Its Events queued webhook deliveries.
        Effect.flatMap((queued) => (queued ? raised : Effect.void)),
      )

    /** The permit is handed back when the actor leaves, unless an attempt has not ended: that one may still renew it. */
    const opened = (identityId: string) =>
      Effect.tap(gates.of(identityId), ({ handBack }) =>
        Effect.addFinalizer(() => Effect.suspend(() => (underWay.size === 0 ? handBack : Effect.void))),
      )

    /** Leases rows; the same statement renews a permit that is about to expire. */
    const lease = (identity: OwnIdentity, { permit }: Gate, atMost: number) =>
      Effect.flatMap(now, (at): Effect.Effect<Lease, Moved | Unavailable | SqlError.SqlError> => {
        const wanted = { identityId: identity.id, now: at, atMost }
        if (!permit.isShort()) return Effect.catchTag(outbox.lease(wanted), "FenceLost", Effect.die)
        return writing.write(system, (write) =>
          permit.renewedBy(write, outbox.lease({ ...wanted, renews: write.claim }), ({ leased }) => leased.length > 0),
        )
      })

    const dispatch: Running<OwnIdentity>["dispatch"] = Effect.fnUntraced(function* (identity, raised, ended) {
      const free = places - underWay.size
      // The first attempt that ends wakes this source.
      if (free <= 0) {
        isMore = true
        return false
      }
      gate ??= yield* Scope.provide(opened(identity.id), scope)
      const { leased, due: next } = yield* lease(identity, gate, free)
      due = next
      isMore = leased.length === free
      for (const row of leased) {
        underWay.set(row, undefined)
        const fiber = yield* attempt(identity, row, gate, raised).pipe(
          // A row whose outcome could not be recorded keeps its lease and is retried when the lease expires.
          Effect.catchCause((cause) =>
            Effect.logWarning("The outcome of an attempt to send mail could not be recorded", cause),
          ),
          Effect.ensuring(
            Effect.suspend(() => {
              underWay.delete(row)
              // Otherwise every due row was leased, and whatever makes more rows due wakes this source.
              return isMore ? ended : Effect.void
            }),
          ),
          FiberSet.run(attempts),
        )
        if (underWay.has(row)) underWay.set(row, fiber)
      }
      if (leased.length > 0 && !isRenewing) {
        isRenewing = true
        yield* Effect.forkIn(renewing, scope)
      }
      return leased.length > 0
    })

    return {
      dispatch: (identity, raised, ended) => leasing.step(dispatch(identity, raised, ended)),
      nextDue: () => Effect.sync(() => due),
      isBusy: () => underWay.size > 0,
      settle: leasing.settled(attempts),
    }
  }),
}

/**
 * Makes mail due that was held because no transport was configured, when a process with a transport starts. A leased row
 * is never held, since the lease clears `held`. Mail that the restore of a backup postponed is due much later, and only an
 * operator releases it.
 */
export const releaseHeldMail = Layer.effectDiscard(
  Effect.gen(function* () {
    const { carries } = yield* MailTransport
    if (carries.by === "none") return
    const sql = yield* Unhurried
    const at = new Date(yield* Clock.currentTimeMillis)
    // The clocks of processes may differ, hence twice the time for which mail is held.
    const latest = new Date(at.getTime() + 2 * Timing.outboxHeldMillis)
    yield* sql`
      update outbox set next_attempt_at = ${at}, held = null
      where held is not null and next_attempt_at > ${at} and next_attempt_at <= ${latest}`
  }),
)
