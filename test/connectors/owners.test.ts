import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { Identities } from "@svc/cluster/actor/Identities"
import { Timing } from "@svc/cluster/Timing"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Context, Effect, Exit, Fiber, Layer, Schedule } from "effect"
import { awaitFiber, identityOf, makeOrg, waitUntil } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"
import { rows } from "../harness/Stores.ts"
import { mastodonServer, connect, eventsOf, newPost, rowOf } from "./ConnectedIdentity.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)

/**
 * Retries a call as its error's hint says: a process that polls for mentions may be refreshing the token while another process takes over.
 */
const retried = <A, E extends { readonly _tag: string }, R>(call: Effect.Effect<A, E, R>) =>
  Effect.retry(call, {
    while: ({ _tag }) => _tag === "connector_platform_error",
    schedule: Schedule.spaced("100 millis"),
  })

/**
 * Runs a call while the clock advances, since a former owner waits before it continues. The steps are small, so that the call's timeout
 * does not expire while it waits for real I/O.
 */
const whileClockAdvances = <A, E, R>(call: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.exit(call))
    return yield* yield* awaitFiber(fiber, "20 millis")
  }).pipe(Effect.flatten)

layer(sharedServices)("two processes that both believe that they own a Connector", (it) => {
  it.effect("spend a refresh token once, because the previous owner checks its ownership before it sends", () =>
    Effect.gen(function* () {
      // A token that expires within a minute is refreshed before each use, and a refresh token is valid once.
      const server = yield* mastodonServer({ tokenSeconds: 30 })
      const [first, second] = [yield* Layer.build(actorProcess()), yield* Layer.build(actorProcess())]
      const org_id = yield* makeOrg
      const identity_id = yield* makeUuidV7
      const identities = Context.get(first, Identities)
      yield* whileClockAdvances(ask(identities.of("ada").Create({ org_id, identity_id, handle: "ada" })))
      yield* waitUntil(identityOf("ada"), (row) => row?.status === "ready")
      const bot = server.world.join("botada")
      yield* Effect.provide(whileClockAdvances(connect(server, "ada", org_id, bot)), first)
      yield* waitUntil(rowOf(identity_id), (row) => row?.mark != null)
      const post = (process: Context.Context<Connectors>, text: string) =>
        Effect.flatMap(newPost({ text }), (wanted) =>
          whileClockAdvances(
            retried(
              through(
                Context.get(process, Connectors)
                  .of("ada", "mastodon")
                  .Publish({ org_id, ...wanted }),
              ),
            ),
          ),
        )
      yield* post(first, "one")
      const read = (process: Context.Context<Connectors>) =>
        whileClockAdvances(
          retried(
            through(
              Context.get(process, Connectors)
                .of("ada", "mastodon")
                .ReadPosts({ org_id, of: "posts", limit: 50, cursor: null }),
            ),
          ),
        )
      // The second process takes over. Then the first process continues with its outdated memory.
      yield* post(second, "two")
      expect((yield* read(first)).entries.map(({ text }) => text)).toEqual(["two", "one"])
      yield* read(second)
      yield* post(first, "three")
      yield* post(second, "four")
      expect([...server.world.statuses.values()].map(({ text }) => text)).toEqual(["one", "two", "three", "four"])
      expect((yield* eventsOf(identity_id)).map(({ type }) => type)).toEqual(["connector.connected"])
      expect(yield* rowOf(identity_id)).toMatchObject({ status: "connected" })
    }),
  )

  it.effect("continue with the token of a refresh whose process lost ownership before it stored the token", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ tokenSeconds: 30 })
      const [first, second] = [yield* Layer.build(actorProcess()), yield* Layer.build(actorProcess())]
      const org_id = yield* makeOrg
      const identity_id = yield* makeUuidV7
      yield* whileClockAdvances(
        ask(Context.get(first, Identities).of("cat").Create({ org_id, identity_id, handle: "cat" })),
      )
      yield* waitUntil(identityOf("cat"), (row) => row?.status === "ready")
      yield* Effect.provide(whileClockAdvances(connect(server, "cat", org_id, server.world.join("botcat"))), first)
      yield* waitUntil(rowOf(identity_id), (row) => row?.mark != null)
      const read = (process: Context.Context<Connectors>) =>
        through(
          Context.get(process, Connectors)
            .of("cat", "mastodon")
            .ReadPosts({ org_id, of: "posts", limit: 50, cursor: null }),
        )
      // The server has used up the refresh token, and its response is delayed until another process has taken over.
      const release = Promise.withResolvers<void>()
      let spent = 0
      server.settings.after = async (route) => {
        if (route === "POST /oauth/token" && spent++ === 0) await release.promise
      }
      const overtaken = yield* Effect.forkChild(Effect.exit(read(first)))
      yield* waitUntil(
        Effect.map(
          rows((sql) => sql`select 1`),
          () => spent,
        ),
        (count) => count > 0,
        "20 millis",
      )
      expect(yield* whileClockAdvances(Effect.flip(read(second)))).toMatchObject({
        code: "connector_platform_error",
        agent_hint: "wait",
      })
      expect(spent).toBe(1)
      release.resolve()
      yield* whileClockAdvances(Fiber.join(overtaken))
      yield* waitUntil(Effect.exit(whileClockAdvances(read(second))), Exit.isSuccess, "20 millis")
      expect(server.settings.spentTwice).toBe(0)
      expect(yield* rowOf(identity_id)).toMatchObject({ status: "connected" })
    }),
  )

  it.effect("raise one Event for a mention", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const [first, second] = [yield* Layer.build(actorProcess()), yield* Layer.build(actorProcess())]
      const org_id = yield* makeOrg
      const identity_id = yield* makeUuidV7
      yield* whileClockAdvances(
        ask(Context.get(first, Identities).of("bea").Create({ org_id, identity_id, handle: "bea" })),
      )
      yield* waitUntil(identityOf("bea"), (row) => row?.status === "ready")
      yield* Effect.provide(whileClockAdvances(connect(server, "bea", org_id, server.world.join("botbea"))), first)
      yield* waitUntil(rowOf(identity_id), (row) => row?.mark != null)
      // Both processes read the notifications before either of them has moved the mark.
      yield* rows((sql) => sql`select 1`)
      for (let n = 1; n <= 5; n++) server.world.publish(server.world.join("grace"), `@botbea ${n}`)
      const wake = (one: Context.Context<Connectors>) =>
        Effect.ignore(ask(Context.get(one, Connectors).of("bea", "mastodon").Work(undefined, { discard: true })))
      yield* whileClockAdvances(Effect.all([wake(first), wake(second)], { concurrency: "unbounded" }))
      const reportedTexts = Effect.map(eventsOf(identity_id, "connector.mention"), (events) =>
        events.map(({ data }) => data.post.text),
      )
      yield* waitUntil(reportedTexts, (texts) => texts.length >= 5, "1 second")
      yield* whileClockAdvances(Effect.all([wake(first), wake(second)], { concurrency: "unbounded" }))
      expect(yield* reportedTexts).toEqual([1, 2, 3, 4, 5].map((n) => `@botbea ${n}`))
    }),
  )

  it.effect("send nothing after a pause has returned, even the process that does not know about it", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const [first, second] = [yield* Layer.build(actorProcess()), yield* Layer.build(actorProcess())]
      const org_id = yield* makeOrg
      const identity_id = yield* makeUuidV7
      yield* whileClockAdvances(
        ask(Context.get(first, Identities).of("eve").Create({ org_id, identity_id, handle: "eve" })),
      )
      yield* waitUntil(identityOf("eve"), (row) => row?.status === "ready")
      yield* Effect.provide(whileClockAdvances(connect(server, "eve", org_id, server.world.join("boteve"))), first)
      yield* waitUntil(rowOf(identity_id), (row) => row?.mark != null)
      const actorOf = (process: Context.Context<Connectors>) => Context.get(process, Connectors).of("eve", "mastodon")
      yield* newPost({ text: "one" }).pipe(
        Effect.flatMap((wanted) => whileClockAdvances(through(actorOf(first).Publish({ org_id, ...wanted })))),
      )
      const permits = rows((sql) => sql`select from actor_permit where id = 'eve/mastodon' and until > now()`)
      expect(yield* permits).toHaveLength(1)
      yield* yield* awaitFiber(
        yield* Effect.forkChild(ask(actorOf(second).Pause({ org_id, paused: true, everyone: false }))),
        "1 millis",
      )
      const calls: Array<string> = []
      server.settings.before = async (path) => void calls.push(path)
      // The pause waited until the first process's permit expired. The first process still believes that it owns the Connector and that the
      // Connector is active.
      expect(yield* permits).toEqual([])
      const read = through(actorOf(first).ReadPosts({ org_id, of: "posts", limit: 50, cursor: null }))
      expect(yield* whileClockAdvances(Effect.flip(read))).toMatchObject({ code: "connector_paused" })
      expect(calls).toEqual([])
    }),
  )
})
