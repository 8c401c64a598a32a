/** Waiting for mail, without a store: the cost of a change notification, and when a wait ends. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Addresses } from "@svc/domain/Addresses"
import { networksOf } from "@svc/domain/account/Networks"
import { unlimited, scopesOf } from "@svc/domain/account/Scope"
import { RequestContext, makeRequestContext } from "@svc/api/RequestContext"
import { ShutdownSignal } from "@svc/api/ShutdownSignal"
import * as MessageWait from "@svc/api/mail/MessageWait"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as Subscribers from "@svc/cluster/feed/Subscribers"
import { type MessageFilter, MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Caller, type CallerOfRequest, type SubjectInfo } from "@svc/domain/account/Authorization"
import type { MessageSummary } from "@svc/domain/mail/Message"
import { Unauthenticated } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Fiber, Latch, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"

const identity = "identity" as IdentityId
const message = { subject: "Waited for" } as MessageSummary
const subject = { id: identity, canonical: "ada", handle: "ada" } as SubjectInfo
const exchange = makeRequestContext("req_1", {
  address: "192.0.2.1",
  via: "mcp",
  tool: "svc_email_wait",
  userAgent: null,
})
const caller = {
  kind: "session",
  credentialId: "session",
  org: { id: "org" },
  identities: null,
  scopes: unlimited,
  networks: null,
} as CallerOfRequest

/** The switches of a test. */
interface World {
  looks: number
  /** The parameters of the last query. */
  asked: MessageFilter | undefined
  mail: Array<MessageSummary>
  /** The newest message before the wait. */
  newest: string | undefined
  revoked: boolean
  /** The current state of the credential. */
  caller: CallerOfRequest
  /** The source of each authorization check. */
  readonly ways: Array<string | undefined>
  readonly revocation: Latch.Latch
  readonly subscribers: Subscribers.Subscribers
}
class Turned extends Context.Service<Turned, World>()("test/Turned") {}

const world = Layer.sync(Turned, () => ({
  looks: 0,
  asked: undefined,
  mail: [],
  newest: undefined,
  revoked: false,
  caller,
  ways: [],
  revocation: Latch.makeUnsafe(),
  subscribers: Subscribers.make(),
}))
const fromWorld = <I, S>(key: Context.Key<I, S>, make: (turned: World) => S) =>
  Layer.effect(key, Effect.map(Turned, make))

const services = Layer.mergeAll(
  ShutdownSignal.layer,
  Layer.succeed(Addresses, { baseUrl: "https://api.example" } as Addresses["Service"]),
  fromWorld(ChangeFeed, ({ subscribers }) => ({
    ...subscribers,
    notify: subscribers.wake,
    announce: () => {},
    changed: () => {},
    resources: () => Effect.succeed({ recent: [], await: Effect.never }),
  })),
  fromWorld(StandingCredentials, ({ revocation }) => ({
    watch: () => Effect.succeed(Effect.asVoid(revocation.await)),
  })),
  Layer.unwrap(
    Effect.map(Turned, (turned) =>
      Layer.merge(
        Layer.mock(MessageQueries, {
          newest: () => Effect.succeed(turned.newest),
          list: (_, filterOf) =>
            Effect.sync(() => {
              turned.looks++
              turned.asked = filterOf
              return { messages: turned.mail, next_cursor: null }
            }),
        }),
        Layer.mock(CredentialLookup, {
          resolve: (_, from) =>
            Effect.suspend(() => {
              turned.ways.push(from?.via)
              return turned.revoked
                ? Effect.fail(new Unauthenticated({ detail: "revoked" }))
                : Effect.succeed(turned.caller)
            }),
        }),
      ),
    ),
  ),
).pipe(Layer.provideMerge(Layer.fresh(world)))

/** A call with `wait=10` and its environment. */
const calling = Effect.fnUntraced(function* (filter: MessageFilter) {
  const wait = yield* MessageWait.make
  const turned = yield* Turned
  const fiber = yield* Effect.forkChild(
    wait(subject, filter, 10).pipe(
      Effect.provideService(Caller, caller),
      Effect.provideService(RequestContext, exchange),
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromWeb(new Request("http://localhost/")),
      ),
    ),
  )
  yield* TestClock.adjust(0)
  return { fiber, turned, departure: yield* ShutdownSignal }
})
const waiting = calling({ limit: 10, offset: 0 }).pipe(Effect.provide(Layer.fresh(services)))

layer(Layer.empty)("A wait", (it) => {
  it.effect("queries once per notification, and continues if nothing matched", () =>
    Effect.gen(function* () {
      const { fiber, turned } = yield* waiting
      expect(turned.looks).toBe(1)
      turned.subscribers.wake(identity)
      yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("1 second")
      expect([turned.looks, fiber.pollUnsafe()]).toEqual([2, undefined])
      turned.mail = [message]
      turned.subscribers.wake(identity)
      expect((yield* Fiber.join(fiber)).page.messages).toEqual([message])
      expect(turned.looks).toBe(3)
    }),
  )

  it.effect("returns an empty result when its time is over, not later", () =>
    Effect.gen(function* () {
      const { fiber } = yield* waiting
      yield* TestClock.adjust("9999 millis")
      expect(fiber.pollUnsafe()).toBe(undefined)
      yield* TestClock.adjust("1 millis")
      expect((yield* Fiber.join(fiber)).page.messages).toEqual([])
    }),
  )

  it.effect("lasts as long as requested when the clock is set back an hour meanwhile", () =>
    Effect.gen(function* () {
      const { fiber, turned } = yield* waiting
      yield* TestClock.adjust("4 seconds")
      const now = yield* Clock.currentTimeMillis
      yield* TestClock.setTime(now - 3_600_000)
      // The test clock holds its sleepers to the time of day, so a notification restarts the sleep.
      turned.subscribers.wake(identity)
      yield* TestClock.adjust("5999 millis")
      expect(fiber.pollUnsafe()).toBe(undefined)
      yield* TestClock.adjust("1 millis")
      expect(fiber.pollUnsafe()).not.toBe(undefined)
    }),
  )

  it.effect("returns no mail to a credential that was revoked meanwhile, but an error immediately", () =>
    Effect.gen(function* () {
      const mailCame = yield* waiting
      mailCame.turned.revoked = true
      mailCame.turned.mail = [message]
      mailCame.turned.subscribers.wake(identity)
      expect((yield* Effect.flip(Fiber.join(mailCame.fiber))).code).toBe("unauthenticated")
      const quiet = yield* waiting
      quiet.turned.revoked = true
      yield* quiet.turned.revocation.open
      expect((yield* Effect.flip(Fiber.join(quiet.fiber))).code).toBe("unauthenticated")
    }),
  )

  it.effect("re-authorizes like the original call: by its transport, for its Identity and for mail", () =>
    Effect.gen(function* () {
      const granted = { ...caller, kind: "grant" as const }
      const outcome = Effect.fnUntraced(function* (narrowed: CallerOfRequest) {
        const { turned, fiber } = yield* waiting
        turned.caller = narrowed
        turned.mail = [message]
        yield* turned.revocation.open
        const code = yield* Effect.match(Fiber.join(fiber), { onSuccess: () => "mail", onFailure: (one) => one.code })
        return { code, ways: turned.ways }
      })
      const other = { id: "other" as IdentityId, canonical: "bob", handle: "bob", status: "ready" } as const
      expect(yield* outcome(granted)).toEqual({ code: "mail", ways: ["mcp"] })
      expect(yield* outcome({ ...granted, identities: [other] })).toMatchObject({ code: "identity_not_granted" })
      expect(yield* outcome({ ...granted, scopes: scopesOf("card:read") })).toMatchObject({ code: "scope_missing" })
      for (const [networks, code] of [
        ["192.0.2.0/24", "mail"],
        ["198.51.100.0/24", "network_refused"],
      ] as const)
        expect(yield* outcome({ ...granted, networks: networksOf(networks) })).toMatchObject({ code })
    }),
  )

  it.effect("begins after the newest message, and says where the next one continues", () =>
    Effect.gen(function* () {
      const turned = yield* Turned
      turned.newest = "msg_5"
      const quiet = yield* calling({ limit: 10, offset: 0 })
      yield* TestClock.adjust("10 seconds")
      expect([(yield* Fiber.join(quiet.fiber)).after, turned.asked?.after]).toEqual(["msg_5", "msg_5"])
      const { fiber } = yield* calling({ limit: 10, offset: 0 })
      turned.mail = ["msg_9", "msg_7"].map((id) => ({ ...message, id }) as MessageSummary)
      turned.subscribers.wake(identity)
      expect((yield* Fiber.join(fiber)).after).toBe("msg_9")
    }).pipe(Effect.provide(Layer.fresh(services))),
  )

  it.effect("ends immediately when the process shuts down", () =>
    Effect.gen(function* () {
      const { fiber, departure } = yield* waiting
      yield* departure.open
      expect((yield* Fiber.join(fiber)).page.messages).toEqual([])
    }),
  )

  it.effect(
    "of a dead process is repeated from the same position, and immediately returns what arrived meanwhile",
    () =>
      Effect.gen(function* () {
        const filter = { limit: 10, offset: 0, after: "msg_1" }
        const lost = yield* calling(filter)
        yield* Fiber.interrupt(lost.fiber)
        lost.turned.mail = [message]
        const { fiber, turned } = yield* calling(filter)
        expect((yield* Fiber.join(fiber)).page.messages).toEqual([message])
        expect(turned.asked).toEqual(filter)
      }).pipe(Effect.provide(Layer.fresh(services))),
  )
})
