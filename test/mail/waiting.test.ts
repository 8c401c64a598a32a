/** Waiting for mail, without a store: what a word of a change costs, and when an answer comes. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Departure } from "@svc/api/Departure"
import * as Waiting from "@svc/api/mail/Waiting"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as Subscribers from "@svc/cluster/feed/Subscribers"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Caller, type CallerInfo } from "@svc/domain/account/Authorization"
import type { MessageSummary } from "@svc/domain/mail/Message"
import { Unauthenticated } from "@svc/domain/problems/Problem"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"

const identity = "identity" as IdentityId
const message = { subject: "Waited for" } as MessageSummary
const caller = { kind: "session", credentialId: "session", org: { id: "org" } } as CallerInfo

/** What the test turns. */
interface World {
  looks: number
  mail: Array<MessageSummary>
  revoked: boolean
  readonly gone: Latch.Latch
  readonly subscribers: Subscribers.Subscribers
}
class Turned extends Context.Service<Turned, World>()("test/Turned") {}

const world = Layer.sync(Turned, () => ({
  looks: 0,
  mail: [],
  revoked: false,
  gone: Latch.makeUnsafe(),
  subscribers: Subscribers.make(),
}))
const fromWorld = <I, S>(key: Context.Key<I, S>, make: (turned: World) => S) =>
  Layer.effect(key, Effect.map(Turned, make))

const services = Layer.mergeAll(
  Departure.layer,
  fromWorld(ChangeFeed, ({ subscribers }) => ({ ...subscribers, announce: () => {} })),
  fromWorld(StandingCredentials, ({ gone }) => ({ watch: () => Effect.succeed(Effect.asVoid(gone.await)) })),
  Layer.unwrap(
    Effect.map(Turned, (turned) =>
      Layer.merge(
        Layer.mock(MessageQueries, {
          newest: () => Effect.succeed(undefined),
          list: () =>
            Effect.sync(() => {
              turned.looks++
              return { messages: turned.mail, next_cursor: null }
            }),
        }),
        Layer.mock(CredentialLookup, {
          resolve: () =>
            Effect.suspend(() =>
              turned.revoked ? Effect.fail(new Unauthenticated({ detail: "revoked" })) : Effect.succeed(caller),
            ),
        }),
      ),
    ),
  ),
).pipe(Layer.provideMerge(Layer.fresh(world)))

/** A call with `wait=10`, and the world it waits in. */
const waiting = Effect.gen(function* () {
  const wait = yield* Waiting.make
  const turned = yield* Turned
  const fiber = yield* Effect.forkChild(
    wait(identity, { limit: 10, offset: 0 }, 10).pipe(
      Effect.provideService(Caller, caller),
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromWeb(new Request("http://localhost/")),
      ),
    ),
  )
  yield* TestClock.adjust(0)
  return { fiber, turned, departure: yield* Departure }
}).pipe(Effect.provide(Layer.fresh(services)))

layer(Layer.empty)("a wait", (it) => {
  it.effect("looks once for a word, and goes on waiting when nothing matched", () =>
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

  it.effect("answers nothing when its time is over, not later", () =>
    Effect.gen(function* () {
      const { fiber } = yield* waiting
      yield* TestClock.adjust("9999 millis")
      expect(fiber.pollUnsafe()).toBe(undefined)
      yield* TestClock.adjust("1 millis")
      expect((yield* Fiber.join(fiber)).page.messages).toEqual([])
    }),
  )

  it.effect("answers no mail to a credential that was revoked meanwhile, and tells it so at once", () =>
    Effect.gen(function* () {
      const mailCame = yield* waiting
      mailCame.turned.revoked = true
      mailCame.turned.mail = [message]
      mailCame.turned.subscribers.wake(identity)
      expect((yield* Effect.flip(Fiber.join(mailCame.fiber))).code).toBe("unauthenticated")
      const quiet = yield* waiting
      quiet.turned.revoked = true
      yield* quiet.turned.gone.open
      expect((yield* Effect.flip(Fiber.join(quiet.fiber))).code).toBe("unauthenticated")
    }),
  )

  it.effect("answers at once when the process leaves", () =>
    Effect.gen(function* () {
      const { fiber, departure } = yield* waiting
      yield* departure.open
      expect((yield* Fiber.join(fiber)).page.messages).toEqual([])
    }),
  )
})
