/**
 * A Connector whose server is slow, rejects or limits requests, or closes connections. Each command must create one post, each mention one
 * Event, and no call may wait for a response that never arrives.
 */
import { layer } from "@effect/vitest"
import { onBehalfOf } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Clock, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, expect } from "vitest"
import { actors, waitUntil } from "../../harness/Actors.ts"
import { accountHolder } from "../../harness/Stores.ts"
import { eventsOf, newPost, rowOf } from "../ConnectedIdentity.ts"
import { type Gate, type Person, loseResponse } from "../network/Network.ts"
import { blueskyConnectors, askPlatform } from "./Connectors.ts"
import type { Context } from "./Context.ts"

type Asked = Parameters<Gate>[0]

const answering =
  (status: number, error: string, headers: Record<string, string> = {}) =>
  ({ response }: Asked) =>
    void response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify({ error, message: `${error} of the test` }))

/** Seconds for which the server asks clients to send no requests. */
const quietSeconds = 120

/** Handlers that simulate each fault, by name; `now` is in milliseconds. */
const faults: Readonly<Record<string, (now: number) => (request: Asked) => void>> = {
  "cut before it is received": () => (request) => void request.request.socket.destroy(),
  "done, and its answer lost": () => (request) => (loseResponse(request), request.pass()),
  "503": () => answering(503, "ServiceUnavailable"),
  "502 without words": () => (request) => void request.response.writeHead(502).end("bad gateway"),
  "429": (now) =>
    answering(429, "RateLimitExceeded", {
      "ratelimit-limit": "3000",
      "ratelimit-remaining": "0",
      "ratelimit-reset": String(Math.floor(now / 1_000) + quietSeconds),
    }),
  slow: () => (request) => void setTimeout(request.pass, 100),
}
const kinds = Object.keys(faults)

export const suite = (context: Context) => {
  const { platforms, connected, nextPoll } = blueskyConnectors(context)
  afterEach(() => {
    context.network.front.gate = undefined
  })

  /** Handles requests of one method with `meet`, and passes all others to the server. */
  const before = (method: string, meet: (request: Asked) => void) => {
    context.network.front.gate = (request) => (request.method === method ? meet(request) : request.pass())
  }
  const open = Effect.sync(() => {
    context.network.front.gate = undefined
  })
  const textsOf = ({ agent, did }: Person) =>
    Effect.promise((): Promise<ReadonlyArray<string>> =>
      agent.com.atproto.repo
        .listRecords({ repo: did, collection: "app.bsky.feed.post", limit: 100 })
        .then(({ data }: any) => data.records.map(({ value }: any) => value.text)),
    )

  // An idle actor is removed from memory and loaded again for its next poll.
  const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors({ platforms })))
  layer(watched, { timeout: "3 minutes" })("a misbehaving server", (it) => {
    it.effect("receives one post per command, and each failure has a matching problem", () =>
      Effect.gen(function* () {
        const { org_id, owner, actor } = yield* connected("quin")
        const texts = kinds.flatMap((kind) => [`first ${kind}`, `second ${kind}`])
        const failures = new Map<string, unknown>()
        for (const [at, text] of texts.entries()) {
          const kind = kinds[Math.floor(at / 2)]!
          const post = { org_id, ...(yield* newPost({ text })) }
          let met = 0
          const now = yield* Clock.currentTimeMillis
          // The fault hits the first attempt, and for every second text also the second attempt.
          before("com.atproto.repo.createRecord", (request) =>
            met++ < 1 + (at % 2) ? faults[kind]!(now)(request) : request.pass(),
          )
          let made = yield* Effect.exit(askPlatform(actor.Publish(post)))
          for (let tries = 1; Exit.isFailure(made) && tries < 5; tries++) {
            failures.set(kind, yield* Effect.flip(made))
            made = yield* Effect.exit(askPlatform(actor.Publish(post)))
          }
          yield* open
          expect(Exit.isSuccess(made) && made.value.text).toBe(text)
          // Repeating a completed command sends no request to the server.
          before("com.atproto.repo.createRecord", answering(500, "NotAgain"))
          expect(yield* Effect.exit(askPlatform(actor.Publish(post)))).toEqual(made)
          yield* open
        }
        expect((yield* textsOf(owner)).toSorted()).toEqual(texts.toSorted())
        expect(Object.fromEntries(failures)).toMatchObject({
          "cut before it is received": {
            code: "connector_platform_error",
            agent_hint: "wait",
            retry_after_seconds: 10,
          },
          "done, and its answer lost": { code: "connector_platform_error", agent_hint: "wait" },
          "503": { code: "connector_platform_error", agent_hint: "wait" },
          "502 without words": { code: "connector_platform_error", agent_hint: "wait" },
          "429": {
            code: "connector_platform_rate_limited",
            agent_hint: "wait",
            detail: "Bluesky: RateLimitExceeded of the test",
          },
        })
        const { retry_after_seconds } = failures.get("429") as { retry_after_seconds: number }
        expect(retry_after_seconds).toBeGreaterThan(quietSeconds - 2)
        expect(retry_after_seconds).toBeLessThanOrEqual(quietSeconds)
        expect(failures.has("slow")).toBe(false)
      }),
    )

    it.effect("is polled again after each failure and rate limit, and every mention raises one Event", () =>
      Effect.gen(function* () {
        const { id } = yield* connected("rhea")
        yield* waitUntil(rowOf(id), (row) => row?.polled_at != null, 0)
        const texts = kinds.map((kind) => `@rhea.test ${kind}`)
        for (const [at, kind] of kinds.entries()) {
          yield* Effect.promise(() => context.grace.post(texts[at]!))
          const { value: standing } = yield* waitUntil(rowOf(id), (row) => row?.poll_due_at != null, 0)
          const due = standing!.poll_due_at!.getTime()
          const now = due + 1_000
          let request = 0
          before("app.bsky.notification.listNotifications", (one) => {
            request++
            faults[kind]!(now)(one)
          })
          // The clock stops when the poll is due, since calls time out after 20 seconds of test time.
          yield* TestClock.adjust(now - (yield* Clock.currentTimeMillis))
          yield* waitUntil(
            Effect.sync(() => request),
            (count) => count > 0,
            "100 millis",
          )
          const { value: row } = yield* waitUntil(
            rowOf(id),
            (row) => row?.poll_due_at != null && row.poll_due_at.getTime() !== due,
            // The call takes real time, during which the test's clock must not advance by 20 seconds. A retry may happen in the next poll.
            "1 millis",
          )
          yield* open
          expect([kind, row!.last_error === null]).toEqual([kind, kind === "slow"])
          if (kind === "429")
            expect(row!.poll_due_at!.getTime()).toBeGreaterThanOrEqual(now + (quietSeconds - 1) * 1_000)
          expect(row!.status).toBe("connected")
        }
        const { value } = yield* waitUntil(
          eventsOf(id, "connector.mention"),
          (events) => events.length >= texts.length,
          "100 millis",
        )
        expect(value.map(({ data }) => data.post.text)).toEqual(texts)
        expect(yield* rowOf(id)).toMatchObject({ last_error: null })
      }),
    )

    it.effect("does not block other posts, polls or a pause while a post is pending", () =>
      Effect.gen(function* () {
        const { org_id, id, owner, actor } = yield* connected("sven")
        yield* waitUntil(rowOf(id), (row) => row?.polled_at != null, 0)
        const held: Array<Asked> = []
        before("com.atproto.repo.createRecord", (request) => void held.push(request))
        const waiting = yield* Effect.forkChild(
          Effect.exit(askPlatform(actor.Publish({ org_id, ...(yield* newPost({ text: "waits" })) }))),
        )
        yield* waitUntil(
          Effect.sync(() => held.length),
          (count) => count === 1,
          0,
        )
        yield* open
        yield* askPlatform(actor.Publish({ org_id, ...(yield* newPost({ text: "goes on" })) }))
        yield* Effect.promise(() => context.grace.post("@sven.test hello?"))
        const paused = actor.Pause({ org_id, paused: true, everyone: false }, onBehalfOf(accountHolder))
        yield* askPlatform(paused)
        expect(yield* textsOf(owner)).toEqual(["goes on"])
        // Calls that were sent before the pause complete.
        for (const request of held) request.pass()
        expect(Exit.isSuccess(yield* Fiber.join(waiting))).toBe(true)
        expect(
          yield* askPlatform(Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "too late" })) }))),
        ).toMatchObject({ code: "connector_paused" })
        yield* askPlatform(actor.Pause({ org_id, paused: false, everyone: false }, onBehalfOf(accountHolder)))
        expect((yield* textsOf(owner)).toSorted()).toEqual(["goes on", "waits"])
        yield* nextPoll(id)
        const { value } = yield* waitUntil(eventsOf(id, "connector.mention"), (events) => events.length > 0, 0)
        expect(value.map(({ data }) => data.post.text)).toEqual(["@sven.test hello?"])
      }),
    )
  })
}
