/**
 * The delivery queue of one Identity, driven by its actor: leases what is due, signs and posts it, records the
 * outcome. A target that hangs holds only the places of its own Webhook.
 */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { Clock, Effect, FiberSet, Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Owned } from "../identity/Ownership.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { abandoned, lease, type Leased, nextDue, type Outcome, record } from "./Deliveries.ts"
import { signedHeaders } from "./Signature.ts"
import { signingSecrets } from "./SigningSecrets.ts"

export interface DeliveryQueue {
  /** Starts every attempt that is due and has a place; `ended` runs after each one that was recorded. */
  readonly dispatch: (identity: Owned, ended: Effect.Effect<void>) => Effect.Effect<void, SqlError.SqlError>
  /** When the next waiting delivery is due, leases of other attempts included. */
  readonly nextDue: (identity: Owned) => Effect.Effect<Date | null, SqlError.SqlError>
  readonly underWay: () => number
  /** Waits for the attempts under way, though not as long as a target may take. */
  readonly settle: Effect.Effect<void>
}

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

export const make: Effect.Effect<DeliveryQueue, never, Writes | GuardedClient | Sealing | Scope.Scope> = Effect.gen(
  function* () {
    const sql = yield* Writes
    const client = yield* GuardedClient
    const sealing = yield* Sealing
    const attempts = yield* FiberSet.make<void, unknown>()
    const taken = new Map<string, { first: number; retry: number }>()

    const occupy = (delivery: Leased, change: 1 | -1) => {
      const places = taken.get(delivery.webhook_id) ?? { first: 0, retry: 0 }
      places[delivery.first ? "first" : "retry"] += change
      if (places.first + places.retry === 0) taken.delete(delivery.webhook_id)
      else taken.set(delivery.webhook_id, places)
    }

    const post = Effect.fnUntraced(function* (
      identity: Owned,
      delivery: Leased,
      secrets: ReadonlyArray<Redacted.Redacted<string>>,
    ) {
      const at = yield* now
      const body = JSON.stringify({
        request_id: toPublic("req_", yield* makeUuidV7),
        timestamp: at.toISOString(),
        id: toPublic("evt_", delivery.event_id),
        type: delivery.event_type,
        created_at: delivery.event_created_at.toISOString(),
        identity: { id: identity.id, handle: identity.handle },
        data: delivery.event_data,
      })
      const headers = signedHeaders({
        id: toPublic("evt_", delivery.event_id),
        at,
        body,
        secrets: secrets.map(Redacted.value),
      })
      return yield* client.post(delivery.url, { headers: { ...headers, "content-type": "application/json" }, body })
    })

    /** One attempt from lease to record. An attempt that is cut short counts: its target may have seen it. */
    const attempt = (identity: Owned, delivery: Leased, secrets: ReadonlyArray<Redacted.Redacted<string>>) => {
      const write = (outcome: Outcome) =>
        Effect.uninterruptible(Effect.flatMap(now, (at) => record(sql, identity, delivery, outcome, at)))
      return post(identity, delivery, secrets).pipe(
        Effect.flatMap((answer) =>
          write({ durationMs: answer.durationMs, statusCode: answer.statusCode, error: null }),
        ),
        Effect.catchTag("DeliveryFailed", (failure) =>
          write({ durationMs: failure.durationMs, statusCode: null, error: failure.error }),
        ),
        Effect.onInterrupt(() => Effect.ignore(Effect.flatMap(now, (at) => write(interrupted(delivery, at))))),
      )
    }

    /** Records attempts whose process died: their leases have run out. */
    const reclaim = (identity: Owned, at: Date) =>
      Effect.flatMap(abandoned(sql, identity.id, at), (deliveries) =>
        Effect.forEach(deliveries, (delivery) => record(sql, identity, delivery, interrupted(delivery, at), at), {
          discard: true,
        }),
      )

    const dispatch: DeliveryQueue["dispatch"] = Effect.fnUntraced(function* (identity, ended) {
      const at = yield* now
      const leased = yield* lease(sql, identity.id, taken, at)
      if (leased.length === 0) return yield* reclaim(identity, at)
      const secrets = yield* Effect.provideService(signingSecrets(sql, identity, at), Sealing, sealing)
      for (const delivery of leased) {
        occupy(delivery, 1)
        yield* attempt(identity, delivery, secrets).pipe(
          // What could not be recorded keeps its lease and is taken up again when that runs out.
          Effect.catchCause((cause) => Effect.logWarning("A delivery attempt was not recorded", cause)),
          Effect.ensuring(
            Effect.andThen(
              Effect.sync(() => occupy(delivery, -1)),
              ended,
            ),
          ),
          FiberSet.run(attempts),
        )
      }
    })

    return {
      dispatch,
      nextDue: (identity) => nextDue(sql, identity.id),
      settle: Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(attempts), Timing.settle)),
      underWay: () => [...taken.values()].reduce((sum, places) => sum + places.first + places.retry, 0),
    }
  },
)

const interrupted = (delivery: Leased, at: Date): Outcome => ({
  durationMs: Math.max(0, at.getTime() - delivery.started_at.getTime()),
  statusCode: null,
  error: "interrupted",
})
