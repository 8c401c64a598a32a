/**
 * The delivery queue of an Identity, a work source of its actor: leases due deliveries, signs and posts them, and records
 * the outcomes. A target that hangs only blocks deliveries of its own Webhook.
 */
import { toPublic } from "@svc/domain/Ids"
import { Clock, Effect, FiberSet, Redacted } from "effect"
import type { OwnIdentity } from "../actor/Write.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { Sealing } from "../sealing/Sealing.ts"
import * as Metrics from "../observe/Metrics.ts"
import { traceparent, TracesExported } from "../observe/Traceparent.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as Leasing from "../work/Leasing.ts"
import type { Source } from "../work/Source.ts"
import { Deliveries, type Leased, type Outcome, overdue } from "./Deliveries.ts"
import { bodyOf, requestIdOf, signedHeaders } from "./DeliveryRequest.ts"
import { type SigningSecret, signingSecrets } from "./SigningSecrets.ts"
import { withheld } from "./WebhookState.ts"

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

const kinds = ["first", "retry"] as const
const attempted = Metrics.counter(
  "svc_webhook_attempts_total",
  "Attempts of deliveries: delivered, refused (a response other than 2xx), failed (no response), or interrupted",
  ["outcome", "kind"],
  ["delivered", "refused", "failed", "interrupted"].flatMap((outcome) => kinds.map((kind) => [outcome, kind] as const)),
)
const waited = Metrics.histogram(
  "svc_webhook_duration_seconds",
  "Response times of the targets of Webhooks",
  Metrics.seconds,
  [],
).of()

const outcomeOf = ({ statusCode, error }: Outcome) => {
  if (statusCode === null) return error === "interrupted" ? "interrupted" : "failed"
  return statusCode >= 200 && statusCode < 300 ? "delivered" : "refused"
}

type Needs = Deliveries | Writes | GuardedClient | Sealing

export const source: Source<OwnIdentity, Needs, unknown> = {
  name: "deliveries",
  overdue,
  make: Effect.fnUntraced(function* () {
    const sql = yield* Writes
    const deliveries = yield* Deliveries
    const client = yield* GuardedClient
    const sealing = yield* Sealing
    const traced = yield* TracesExported
    const leasing = yield* Leasing.make
    const attempts = yield* FiberSet.make<void, unknown>()
    let underWay = 0
    /** When to look for abandoned deliveries again while attempts are in flight (ms since 1970). */
    let abandonedLook = 0
    /** When the next delivery is due, by the last query that leased none. */
    let next: Date | null = null
    let known: { readonly current: string | null; readonly secrets: ReadonlyArray<SigningSecret> } | undefined
    const taken = new Map<string, { first: number; retry: number }>()

    const occupy = (delivery: Leased, change: 1 | -1) => {
      const places = taken.get(delivery.webhook_id) ?? { first: 0, retry: 0 }
      places[delivery.first ? "first" : "retry"] += change
      if (places.first + places.retry === 0) taken.delete(delivery.webhook_id)
      else taken.set(delivery.webhook_id, places)
    }

    const post = Effect.fnUntraced(function* (
      identity: OwnIdentity,
      delivery: Leased,
      secrets: ReadonlyArray<Redacted.Redacted<string>>,
    ) {
      const at = delivery.started_at
      const body = bodyOf(identity, delivery, { requestId: requestIdOf(delivery.id, at), at })
      const headers = signedHeaders({
        id: toPublic("evt_", delivery.event_id),
        at,
        body,
        secrets: secrets.map(Redacted.value),
      })
      return yield* client.post(delivery.url, {
        headers: { ...headers, ...(yield* traceparent), "content-type": "application/json" },
        body,
      })
    })

    const record = (identity: OwnIdentity, delivery: Leased, outcome: Outcome) => {
      if (outcome.withheld !== true) {
        attempted.of(outcomeOf(outcome), delivery.first ? "first" : "retry").n++
        waited.observe(outcome.durationMs / 1000)
      }
      return Effect.flatMap(now, (at) => deliveries.record(identity, delivery, outcome, at))
    }

    /** Posts a leased delivery, unless the creator of its Webhook may not read the Event. */
    const deliver = (identity: OwnIdentity, delivery: Leased, secrets: ReadonlyArray<Redacted.Redacted<string>>) => {
      const error = withheld(delivery, delivery.event_type)
      if (error !== undefined) {
        return Effect.succeed<Outcome>({ durationMs: 0, statusCode: null, error, text: null, withheld: true })
      }
      const posted = post(identity, delivery, secrets)
      return (traced ? Effect.withSpan(posted, "Webhooks.deliver", spanOf(delivery)) : posted).pipe(
        Effect.map(({ durationMs, statusCode, text }): Outcome => ({ durationMs, statusCode, error: null, text })),
        Effect.catchTag("RequestFailed", ({ durationMs, error }) =>
          Effect.succeed<Outcome>({ durationMs, statusCode: null, error, text: null }),
        ),
      )
    }

    /** Makes one leased attempt and records it. An interrupted attempt counts, since the target may have received it. */
    const attempt = (
      identity: OwnIdentity,
      delivery: Leased,
      secrets: ReadonlyArray<Redacted.Redacted<string>>,
      freed: Effect.Effect<void>,
      changed: Effect.Effect<void>,
    ) =>
      deliver(identity, delivery, secrets).pipe(
        Effect.onInterrupt(() =>
          Effect.ignore(Effect.flatMap(now, (at) => record(identity, delivery, interrupted(delivery, at)))),
        ),
        // The target may get the next request as soon as it has responded; the row stays leased until the outcome is recorded.
        Effect.ensuring(freed),
        Effect.tap(({ durationMs, statusCode, error }) =>
          Effect.logDebug("delivery attempt", {
            delivery: delivery.id,
            webhook: delivery.webhook_id,
            number: delivery.attempts.length + 1,
            status: statusCode,
            error,
            duration_ms: durationMs,
          }),
        ),
        Effect.flatMap((outcome) =>
          // The query for the next delivery may have run before this was committed.
          Effect.tap(Leasing.recorded(record(identity, delivery, outcome)), () =>
            outcomeOf(outcome) === "delivered" ? Effect.void : changed,
          ),
        ),
      )

    /** Records attempts of crashed processes, whose leases have expired. Returns whether there were any. */
    const reclaim = (identity: OwnIdentity, at: Date) =>
      Effect.flatMap(deliveries.abandoned(identity.id, at), (left) =>
        Effect.as(
          Effect.forEach(left, (delivery) => record(identity, delivery, interrupted(delivery, at)), { discard: true }),
          left.length > 0,
        ),
      )

    /** Returns the active secrets, reloaded after a rotation. A retired secret expires by the clock. */
    const secretsOf = (identity: OwnIdentity, current: string | null, at: Date) =>
      Effect.map(
        known === undefined || known.current !== current
          ? Effect.map(signingSecrets(sql, sealing, identity, at), (secrets) => {
              known = { current, secrets }
              return secrets
            })
          : Effect.succeed(known.secrets),
        (found) => found.filter(({ retiresAt }) => retiresAt === null || retiresAt > at).map(({ secret }) => secret),
      )

    const dispatch = Effect.fnUntraced(function* (
      identity: OwnIdentity,
      _: Effect.Effect<void>,
      // An attempt only causes work of this source: a retry, or a delivery of `webhook.failed`.
      changed: Effect.Effect<void>,
    ) {
      const at = yield* now
      const { leased, due } = yield* deliveries.lease({ identityId: identity.id, taken: new Map(taken), now: at })
      next = due
      if (leased.length === 0) {
        if (due === null || due > at || (underWay > 0 && at.getTime() < abandonedLook)) return false
        // A delivery that is due but was not leased may have been leased by a crashed process.
        abandonedLook = at.getTime() + Timing.abandonedLookMillis
        return yield* reclaim(identity, at)
      }
      const secrets = yield* secretsOf(identity, leased[0]!.secret_id, at)
      for (const delivery of leased) {
        occupy(delivery, 1)
        underWay++
        const freed = Effect.andThen(
          Effect.sync(() => occupy(delivery, -1)),
          changed,
        )
        yield* attempt(identity, delivery, secrets, freed, changed).pipe(
          // A delivery that could not be recorded keeps its lease and is reclaimed when the lease expires.
          Effect.catchCause((cause) => Effect.logWarning("A delivery attempt was not recorded", cause)),
          Effect.ensuring(Effect.suspend(() => (--underWay === 0 ? changed : Effect.void))),
          FiberSet.run(attempts),
        )
      }
      return true
    })

    return {
      dispatch: (identity, all, changed) => leasing.step(dispatch(identity, all, changed)),
      nextDue: () => Effect.sync(() => next),
      isBusy: () => underWay > 0,
      settle: leasing.settled(attempts),
    }
  }),
}

const spanOf = ({ webhook_id }: Leased) => ({ kind: "client" as const, attributes: { "webhook.id": webhook_id } })

const interrupted = (delivery: Leased, at: Date): Outcome => ({
  durationMs: Math.max(0, at.getTime() - delivery.started_at.getTime()),
  statusCode: null,
  error: "interrupted",
  text: null,
})
