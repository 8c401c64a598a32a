/** The delivery queue on the test's clock: retry delays, expired leases and retired secrets. */
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import * as IdentityActor from "@svc/cluster/capabilities/IdentityActor"
import { Writes } from "@svc/cluster/store/Database"
import * as Overdue from "@svc/cluster/work/Overdue"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { countsGrow, countsOf } from "../harness/Counters.ts"
import { deliveries, type Delivery, makeWebhook, oldest, receiverOf } from "./Webhook.ts"

const [second, minute] = [1_000, 60_000]
const hour = 60 * minute

/** The counted attempts by outcome and kind. */
const attempts = countsOf("svc_webhook_attempts_total", "outcome", "kind")

/** Advances the clock to `due`, and waits until attempt `number` is recorded. */
const attempted = Effect.fnUntraced(function* (webhook: string, number: number, due: number) {
  yield* TestClock.setTime(due)
  const has = (delivery: Delivery | undefined) => (delivery?.attempts.length ?? 0) >= number
  // The clock does not advance while an attempt sends its request to a real receiver.
  yield* waitUntil(oldest(webhook), (found) => has(found) || (found?.attempt_started_at ?? null) !== null)
  return (yield* waitUntil(oldest(webhook), has, 0)).value!
})

const withOverdue = Overdue.layer(IdentityActor.watched).pipe(Layer.provideMerge(actors()))

layer(withOverdue)("a delivery that fails", (it) => {
  it.effect("is attempted seven times by the retry schedule, then raises one webhook.failed", () =>
    Effect.gen(function* () {
      const receiver = yield* receiverOf((response) => response.writeHead(500).end())
      const watcher = yield* receiverOf()
      const { webhook_id, signing_secret, register, test } = yield* makeWebhook("ada", receiver.url)
      const watching = yield* makeUuidV7
      yield* register(watching, watcher.url, ["webhook.failed"])
      const delivery_id = yield* test
      let due = yield* Clock.currentTimeMillis
      const waits = [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 24 * hour, undefined]
      for (const [index, wait] of waits.entries()) {
        const delivery = yield* attempted(webhook_id, index + 1, due)
        expect(delivery.attempts).toHaveLength(index + 1)
        expect(receiver.got).toHaveLength(index + 1)
        const attempt = delivery.attempts[index]!
        expect(attempt).toMatchObject({ number: index + 1, status_code: 500, error: null })
        const started = Date.parse(attempt.started_at)
        expect(started).toBeGreaterThanOrEqual(due)
        if (wait === undefined) {
          expect(delivery).toMatchObject({ status: "failed", next_attempt_at: null })
        } else {
          expect(delivery).toMatchObject({ status: "retrying", next_attempt_at: new Date(started + wait) })
          due = started + wait
        }
      }
      yield* attempted(watching, 1, yield* Clock.currentTimeMillis)
      expect(watcher.isSignedWith(signing_secret, watcher.got[0]!)).toBe(true)
      expect(watcher.got[0]!.body).toMatchObject({
        type: "webhook.failed",
      })
      expect(watcher.got[0]!.body.data).toEqual({
        webhook_id: toPublic("wh_", webhook_id),
        delivery_id: toPublic("dlv_", delivery_id),
        event_id: receiver.got[0]!.body.id,
        event_type: "webhook.test",
        attempts: 7,
        status_code: 500,
        error: null,
      })
      yield* TestClock.adjust("2 days")
      expect([receiver.got.length, watcher.got.length]).toEqual([7, 1])
    }),
  )

  it.effect("ends when its Webhook is disabled, and is not retried", () =>
    Effect.gen(function* () {
      const receiver = yield* receiverOf((response) => response.writeHead(500).end())
      const { org_id, actor, webhook_id, test } = yield* makeWebhook("grace", receiver.url)
      yield* test
      yield* attempted(webhook_id, 1, yield* Clock.currentTimeMillis)
      const patch = { org_id, webhook_id, if_version: null }
      yield* ask(actor.PatchWebhook({ ...patch, patch: { status: "disabled" } }))
      const ended = yield* oldest(webhook_id)
      expect(ended).toMatchObject({ status: "failed", next_attempt_at: null })
      expect(ended!.attempts.at(-1)).toMatchObject({ number: 2, error: "webhook_disabled", status_code: null })
      yield* TestClock.adjust("10 minutes")
      expect(receiver.got).toHaveLength(1)
    }),
  )
})

layer(actors())("a delivery", (it) => {
  it.effect.each([
    [200, "delivered"],
    [500, "failed"],
  ] as const)("whose Webhook is disabled during an attempt ends with its response %i", ([code, status]) =>
    Effect.gen(function* () {
      const respond = Promise.withResolvers<void>()
      const receiver = yield* receiverOf((response) => void respond.promise.then(() => response.writeHead(code).end()))
      const { org_id, actor, webhook_id, test } = yield* makeWebhook(`late${code}`, receiver.url)
      yield* test
      yield* waitUntil(
        Effect.andThen(
          oldest(webhook_id),
          Effect.sync(() => receiver.got.length),
        ),
        (count) => count === 1,
        0,
      )
      yield* ask(actor.PatchWebhook({ org_id, webhook_id, if_version: null, patch: { status: "disabled" } }))
      expect(yield* oldest(webhook_id)).toMatchObject({ status: "queued", attempts: [] })
      respond.resolve()
      const { value } = yield* waitUntil(oldest(webhook_id), (found) => found?.attempts.length === 1, 0)
      expect(value).toMatchObject({ status, next_attempt_at: null, attempts: [{ number: 1, status_code: code }] })
    }),
  )

  it.effect("fails by any response other than 2xx, and by no response", () =>
    Effect.gen(function* () {
      const answering = (status: number) =>
        receiverOf((response) => response.writeHead(status, { location: "http://127.0.0.1:1/" }).end())
      const targets = [
        [(yield* answering(302)).url, "retrying", { status_code: 302, error: null }],
        [(yield* answering(410)).url, "retrying", { status_code: 410, error: null }],
        [(yield* answering(299)).url, "delivered", { status_code: 299, error: null }],
        [(yield* answering(300)).url, "retrying", { status_code: 300, error: null }],
        ["http://127.0.0.1:9/", "retrying", { status_code: null, error: "connection" }],
      ] as const
      const before = yield* attempts
      for (const [index, [url, status, attempt]] of targets.entries()) {
        const { webhook_id, test } = yield* makeWebhook(`anita${index}`, url)
        yield* test
        const delivery = yield* attempted(webhook_id, 1, yield* Clock.currentTimeMillis)
        expect(delivery).toMatchObject({ status, attempts: [attempt] })
      }
      yield* countsGrow(attempts, before, { "refused first": 3, "delivered first": 1, "failed first": 1 })
    }),
  )

  it.effect("to an unresponsive target only use the four slots of their Webhook", () =>
    Effect.gen(function* () {
      const hanging = yield* receiverOf(() => {})
      const good = yield* receiverOf()
      const { org_id, actor, webhook_id, register } = yield* makeWebhook("barbara", hanging.url, ["*"])
      const other = yield* makeUuidV7
      yield* register(other, good.url, ["*"])
      for (let n = 0; n < 4; n++) {
        for (const outgoing of ["stopped", "active"] as const) {
          yield* ask(actor.SwitchMail({ org_id, patch: { outgoing }, if_version: null }))
        }
      }
      const delivered = (all: ReadonlyArray<Delivery>) => all.filter(({ status }) => status === "delivered").length
      yield* waitUntil(deliveries(other), (all) => delivered(all) === 8, 0)
      expect(good.got).toHaveLength(8)
      const leased = (yield* deliveries(webhook_id)).filter((one) => one.attempt_started_at !== null)
      expect(leased).toHaveLength(4)
      yield* waitUntil(
        Effect.sync(() => hanging.got.length),
        (count) => count === 4,
        0,
      )
    }),
  )

  it.effect("counts an attempt interrupted by a crash once its lease expired, and is retried", () =>
    Effect.gen(function* () {
      const receiver = yield* receiverOf()
      const { org_id, actor, handle, identity_id, webhook_id } = yield* makeWebhook("ada", receiver.url)
      const started = new Date(yield* Clock.currentTimeMillis)
      const lease = new Date(started.getTime() + minute)
      const [event_id, delivery_id] = [yield* makeUuidV7, yield* makeUuidV7]
      const sql = yield* Writes
      yield* sql`
        insert into event (id, org_id, identity_id, handle, type, data, created_at)
        values (${event_id}, ${org_id}, ${identity_id}, ${handle}, 'mail.stopped', '{}', ${started})`
      // The state after a process crashed during the first attempt.
      yield* sql`
        insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, attempt_started_at, next_attempt_at, created_at)
        values (${delivery_id}, ${webhook_id}, ${identity_id}, ${event_id}, 'mail.stopped', 'queued', ${started}, ${lease}, ${started})`
      const before = yield* attempts
      const woken = ask(actor.Work(undefined, { discard: true }))
      yield* TestClock.setTime(lease.getTime() - 1)
      yield* woken
      expect(yield* oldest(webhook_id)).toMatchObject({ attempts: [], attempt_started_at: started })
      const { value } = yield* waitUntil(oldest(webhook_id), (found) => found?.status === "delivered")
      expect(value!.attempts).toMatchObject([
        { number: 1, error: "interrupted", status_code: null },
        { number: 2, error: null, status_code: 200 },
      ])
      yield* countsGrow(attempts, before, { "interrupted first": 1, "delivered retry": 1 })
      // The delay after the first attempt passed while its lease was valid.
      expect(Date.parse(value!.attempts[1]!.started_at)).toBeGreaterThanOrEqual(lease.getTime())
      expect(receiver.got).toHaveLength(1)
    }),
  )

  it.effect("is attempted again after its lease if the outcome could not be recorded", () =>
    Effect.gen(function* () {
      const receiver = yield* receiverOf()
      const { actor, webhook_id, test } = yield* makeWebhook("alan", receiver.url)
      const sql = yield* Writes
      // A sequence keeps its value when the statement that refuses the outcome is rolled back.
      yield* sql.unsafe(`create sequence refused_outcome`)
      yield* sql.unsafe(`
        create or replace function refuse_outcome() returns trigger language plpgsql as $$
        begin perform nextval('refused_outcome'); raise exception 'no outcome'; end $$`)
      yield* sql.unsafe(`
        create or replace trigger refuse_outcome before update on delivery for each row
        when (old.webhook_id = '${webhook_id}' and new.status <> old.status) execute function refuse_outcome()`)
      yield* test
      yield* waitUntil(
        sql<{ is_called: boolean }>`select is_called from refused_outcome`,
        ([sequence]) => sequence!.is_called,
        0,
      )
      expect(receiver.got).toHaveLength(1)
      yield* ask(actor.Work(undefined))
      const before = yield* oldest(webhook_id)
      yield* sql.unsafe(`drop function refuse_outcome cascade`)
      yield* sql.unsafe(`drop sequence refused_outcome`)
      expect(before).toMatchObject({ status: "queued", attempts: [] })
      yield* TestClock.setTime(before!.next_attempt_at!.getTime())
      yield* ask(actor.Work(undefined, { discard: true }))
      const { value } = yield* waitUntil(oldest(webhook_id), (found) => found?.status === "delivered")
      expect(value!.attempts).toMatchObject([
        { number: 1, error: "interrupted", status_code: null },
        { number: 2, error: null, status_code: 200 },
      ])
      expect(new Set(receiver.got.map(({ headers }) => headers["webhook-id"])).size).toBe(1)
    }),
  )

  it.effect("queued for a disabled Webhook is not overdue work", () =>
    Effect.gen(function* () {
      const receiver = yield* receiverOf()
      const { org_id, actor, handle, identity_id, webhook_id, test } = yield* makeWebhook("grace", receiver.url)
      yield* ask(actor.PatchWebhook({ org_id, webhook_id, if_version: null, patch: { status: "disabled" } }))
      expect(yield* Effect.flip(test)).toMatchObject({ code: "conflict" })
      const sql = yield* Writes
      // An Event whose statement read the Webhook as active and committed after the change.
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        with event as (
          insert into event (id, org_id, identity_id, handle, type, data, created_at)
          values (${yield* makeUuidV7}, ${org_id}, ${identity_id}, ${handle}, 'mail.stopped', '{}', ${now}) returning id)
        insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
        select ${yield* makeUuidV7}, ${webhook_id}, ${identity_id}, id, 'mail.stopped', 'queued', ${now}, ${now} from event`
      // The actor finds no due work and ends, and the scan does not find the delivery.
      yield* ask((yield* Identities).of(handle).Work(undefined))
      const late = new Date(now.getTime() + hour)
      for (const source of IdentityActor.sources) expect(yield* source.overdue(sql, late, 10)).not.toContain(handle)
      expect(yield* oldest(webhook_id)).toMatchObject({ status: "queued", attempts: [] })
      expect(receiver.got).toEqual([])
    }),
  )
})

layer(actors())("a signing secret", (it) => {
  it.effect("signs for one more day after a rotation", () =>
    Effect.gen(function* () {
      const receiver = yield* receiverOf()
      const { org_id, actor, webhook_id, signing_secret: former, test } = yield* makeWebhook("ada", receiver.url)
      const delivered = Effect.gen(function* () {
        const before = receiver.got.length
        yield* test
        yield* waitUntil(
          Effect.sync(() => receiver.got.length),
          (count) => count > before,
          0,
        )
        yield* waitUntil(deliveries(webhook_id), (all) => all.every(({ status }) => status === "delivered"), 0)
        return receiver.got.at(-1)!
      })
      // The queue has read the signing secrets before they change.
      expect(receiver.isSignedWith(former, yield* delivered)).toBe(true)
      const secret_id = yield* makeUuidV7
      const rotated = yield* ask(actor.RotateSecret({ org_id, secret_id }))
      const at = yield* Clock.currentTimeMillis
      expect(rotated.signing_secret).not.toBe(former)
      expect(rotated.previous_valid_until).toEqual(new Date(at + 24 * hour))
      // A repeated command returns the same secret.
      expect(yield* ask(actor.RotateSecret({ org_id, secret_id }))).toEqual(rotated)
      const signedWith = (got: (typeof receiver.got)[number]) =>
        [former, rotated.signing_secret].map((secret) => receiver.isSignedWith(secret, got))
      expect(signedWith(yield* delivered)).toEqual([true, true])
      // The actor reads its signing secrets here and keeps them in memory for a minute.
      yield* TestClock.setTime(at + 24 * hour - minute)
      expect(signedWith(yield* delivered)).toEqual([true, true])
      yield* TestClock.setTime(at + 24 * hour)
      expect(signedWith(yield* delivered)).toEqual([false, true])
      yield* TestClock.adjust("1 hour")
      expect(signedWith(yield* delivered)).toEqual([false, true])
      // The next rotation does not bring the retired secret back.
      yield* ask(actor.RotateSecret({ org_id, secret_id: yield* makeUuidV7 }))
      expect(signedWith(yield* delivered)).toEqual([false, true])
    }),
  )

  it.effect("replaces none if the Identity has no Webhook yet", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const { actor } = yield* makeIdentity(org_id, newHandle("grace"))
      const rotate = ask(actor.RotateSecret({ org_id, secret_id: yield* makeUuidV7 }))
      const [first, again] = [yield* rotate, yield* rotate]
      expect([first.previous_valid_until, again]).toEqual([null, first])
      const target = { url: "http://127.0.0.1:9/", event_types: ["webhook.test"], description: null }
      const webhook = { org_id, webhook_id: yield* makeUuidV7, ...target }
      const { signing_secret } = yield* ask(actor.RegisterWebhook(webhook))
      expect(signing_secret).toBe(first.signing_secret)
      const change = { org_id, webhook_id: yield* makeUuidV7, patch: { description: "x" } }
      const refused = (if_version: ReadonlyArray<number> | null) =>
        Effect.map(
          Effect.flip(ask(actor.PatchWebhook({ ...change, if_version }))),
          (error) => "code" in error && error.code,
        )
      expect([yield* refused(null), yield* refused([1])]).toEqual(["not_found", "precondition_failed"])
    }),
  )
})
