import { expect, layer } from "@effect/vitest"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Platforms } from "@svc/cluster/connectors/platforms/Platforms"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import type { Capability } from "@svc/domain/connectors/Connector"
import { Timing } from "@svc/cluster/Timing"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { actors, platforms, waitUntil } from "../harness/Actors.ts"
import { accountHolder } from "../harness/Stores.ts"
import { mastodonServer, connect, connectedIdentity, eventsOf, newPost, rowOf } from "./ConnectedIdentity.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const polls = (server: { readonly seen: ReadonlyArray<{ readonly path: string }> }) =>
  server.seen.filter(({ path }) => path === "/api/v1/notifications").length
/** Waits until the first poll has stored its mark. */
const marked = (id: string) => waitUntil(rowOf(id), (row) => row?.mark != null, 0)
const postEvents = (id: string) => Effect.map(eventsOf(id), (events) => events.filter(({ data }) => "post" in data))

/** Runs after a call may be sent, while its request connects. */
let whileConnecting = (_url: URL): Effect.Effect<void> => Effect.void
const client = Layer.effect(
  GuardedClient,
  Effect.map(Effect.service(GuardedClient), (guarded) => ({
    ...guarded,
    ask: (url, question, permission) => {
      const request = Effect.tap(permission.request, () => whileConnecting(url))
      return guarded.ask(url, question, { ...permission, request })
    },
  })),
).pipe(Layer.provide(GuardedClient.layer({ allowPrivate: true })))

/** The capabilities that accounts get at the next check of their profile. */
let capabilities: ReadonlyArray<Capability> | undefined
const changing = Layer.effect(
  Platforms,
  Effect.map(Effect.service(Platforms), ({ of }) => ({
    of: (name) =>
      Effect.map(of(name), (platform) => ({
        ...platform,
        inspect: (session) =>
          Effect.map(platform.inspect(session), (status) => ({
            ...status,
            capabilities: capabilities ?? status.capabilities,
          })),
      })),
  })),
).pipe(Layer.provide(platforms))

/** Includes the scan that wakes actors whose work is due later than they stay in memory. */
const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors({ client, platforms: changing })))

layer(watched)("polls", (it) => {
  it.effect("raise one Event with the post for each mention, reply and direct message since the connection", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, bot } = yield* connectedIdentity(server, "ada")
      const grace = server.world.join("grace@elsewhere.example")
      const { value: first } = yield* marked(id)
      expect(first).toMatchObject({ poll_wait_millis: 30_000 })
      const post = server.world.publish(bot, "Ask me")
      server.world.publish(grace, "Hello @botada")
      server.world.publish(grace, "@botada why?", { parent: post })
      server.world.publish(grace, "@botada psst", { visibility: "direct" })
      const { value } = yield* waitUntil(postEvents(id), (events) => events.length >= 3, "1 second")
      expect(value.map(({ type, data }) => [type, data.post.text, data.post.author])).toEqual([
        ["connector.mention", "Hello @botada", "grace@elsewhere.example"],
        ["connector.reply", "@botada why?", "grace@elsewhere.example"],
        ["connector.dm", "@botada psst", "grace@elsewhere.example"],
      ])
      expect(value[1]!.data.post.reply_to).toBe(post.uri)
      const { account } = (yield* rowOf(id))!
      for (const { data } of value)
        expect(data).toEqual({ platform: "mastodon", account, post: data.post, at: data.post.created_at })
      yield* TestClock.adjust("3 minutes")
      yield* waitUntil(
        Effect.sync(() => polls(server)),
        (count) => count >= 4,
        "1 second",
      )
      expect(yield* postEvents(id)).toHaveLength(3)
    }),
  )

  it.effect("report a mention from before the same account was connected again", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, bot, handle } = yield* connectedIdentity(server, "again")
      yield* marked(id)
      const grace = server.world.join("grace")
      server.world.publish(grace, "@botagain are you there?")
      // The clock stands, so no poll runs in between.
      yield* connect(server, handle, org_id, bot)
      const { value } = yield* waitUntil(postEvents(id), (events) => events.length > 0, "1 second")
      expect(value.map(({ data }) => data.post.text)).toEqual(["@botagain are you there?"])
    }),
  )

  it.effect("report nothing from before the connection", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const early = server.world.join("botbea")
      const grace = server.world.join("grace")
      server.world.publish(grace, "@botbea long ago")
      server.world.accounts.set("botbea", early)
      const { id, bot } = yield* connectedIdentity(server, "bea")
      bot.notifications.push(...early.notifications)
      yield* marked(id)
      server.world.publish(grace, "@botbea now")
      const { value } = yield* waitUntil(postEvents(id), (events) => events.length > 0, "1 second")
      expect(value.map(({ data }) => data.post.text)).toEqual(["@botbea now"])
    }),
  )

  it.effect("run every 30 seconds during activity and slow down to ten minutes without it", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id } = yield* connectedIdentity(server, "cal")
      yield* marked(id)
      const waits: Array<number> = []
      for (let n = 0; n < 12; n++) {
        const row = (yield* rowOf(id))!
        waits.push(row.poll_wait_millis)
        const due = row.poll_due_at!.getTime()
        yield* TestClock.setTime(due)
        yield* waitUntil(rowOf(id), (later) => later!.poll_due_at!.getTime() > due, "500 millis")
      }
      expect(waits[0]).toBeLessThanOrEqual(45_000)
      expect(waits.at(-1)).toBe(600_000)
      expect(waits).toEqual(waits.toSorted((one, other) => one - other))
    }),
  )

  it.effect("respect the platform's rate limit and show its message", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id } = yield* connectedIdentity(server, "dan")
      yield* marked(id)
      const reset = new Date((yield* Clock.currentTimeMillis) + 10 * 60_000)
      server.settings.reset = reset
      server.settings.limited = true
      yield* waitUntil(rowOf(id), (row) => row?.last_error != null, "1 second")
      const row = (yield* rowOf(id))!
      expect(row.last_error).toContain("rate of calls")
      expect(row.poll_due_at).toEqual(reset)
      server.settings.limited = false
      yield* waitUntil(rowOf(id), (later) => later?.last_error === null, "5 seconds")
    }),
  )
})

layer(watched)("a Connector", (it) => {
  it.effect("sends no call while it is paused, neither its own nor a caller's", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, actor } = yield* connectedIdentity(server, "ada")
      yield* marked(id)
      yield* ask(actor.Pause({ org_id, paused: true, everyone: false }, onBehalfOf(accountHolder)))
      const calls = server.seen.length
      const refused = yield* through(Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "Hi" })) })))
      expect(refused).toMatchObject({ code: "connector_paused", agent_hint: "stop" })
      expect(yield* through(Effect.flip(actor.ReadNotifications({ org_id, limit: 50, cursor: null })))).toMatchObject({
        code: "connector_paused",
      })
      yield* TestClock.adjust("20 minutes")
      expect(yield* rowOf(id)).toMatchObject({ poll_due_at: null, check_due_at: null })
      expect(server.seen.length).toBe(calls)
      yield* ask(actor.Pause({ org_id, paused: false, everyone: false }))
      yield* waitUntil(
        Effect.sync(() => server.seen.length),
        (count) => count > calls,
        "1 second",
      )
    }),
  )

  it.effect("that is connected during a pause has nothing due", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, actor, bot, handle } = yield* connectedIdentity(server, "pause")
      yield* ask(actor.Pause({ org_id, paused: true, everyone: true }))
      yield* connect(server, handle, org_id, bot)
      expect(yield* rowOf(id)).toMatchObject({ status: "connected", poll_due_at: null, check_due_at: null })
    }),
  )

  it.effect("stops a running operation before its next call when it is paused", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "bea")
      const run = Effect.runPromiseWith(yield* Effect.context<never>())
      // The response to the upload is delayed until the pause is committed.
      server.settings.before = async (path) => {
        if (path === "/api/v2/media") await run(ask(actor.Pause({ org_id, paused: true, everyone: true })))
      }
      const picture = { content_base64: "aGk=", content_type: "image/png" }
      const refused = yield* through(
        Effect.flip(
          actor.Publish({
            org_id,
            ...(yield* newPost({ text: "Hi", options: { mastodon: { media: [picture] } } })),
          }),
        ),
      )
      expect(refused).toMatchObject({ code: "connector_paused" })
      expect(server.seen.some(({ path }) => path === "/api/v1/statuses")).toBe(false)
    }),
  )

  it.effect("sends no call whose request connects while it is paused", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "kim")
      const pause = Effect.orDie(ask(actor.Pause({ org_id, paused: true, everyone: false })))
      const context = yield* Effect.context<never>()
      whileConnecting = ({ pathname }) =>
        pathname === "/api/v1/statuses" ? Effect.provideContext(pause, context) : Effect.void
      const publish = through(Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "Hi" })) })))
      const refused = yield* Effect.ensuring(
        publish,
        Effect.sync(() => (whileConnecting = () => Effect.void)),
      )
      expect(refused).toMatchObject({ code: "connector_paused" })
      expect(server.seen.some(({ path }) => path === "/api/v1/statuses")).toBe(false)
    }),
  )

  it.effect("gets the capabilities of its account at the daily check, and works without the others", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, actor } = yield* connectedIdentity(server, "lea")
      yield* marked(id)
      capabilities = ["post", "notifications"]
      yield* TestClock.setTime((yield* rowOf(id))!.check_due_at!.getTime())
      const { value } = yield* Effect.ensuring(
        waitUntil(rowOf(id), (row) => row?.capabilities.length !== 5, "1 second"),
        Effect.sync(() => (capabilities = undefined)),
      )
      expect(value!.capabilities).toEqual(["post", "notifications"])
      const read = actor.ReadNotifications({ org_id, limit: 50, cursor: null })
      expect(yield* through(read)).toMatchObject({ entries: [] })
      const message = actor.Publish({ org_id, ...(yield* newPost({ text: "Hi", to: "grace" })) })
      expect(yield* through(Effect.flip(message))).toMatchObject({ code: "connector_capability_unsupported" })
    }),
  )

  it.effect("stops with a remedy when its credential is rejected, and recovers when it is connected again", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, actor, bot, handle } = yield* connectedIdentity(server, "cal")
      yield* marked(id)
      server.tokens.clear()
      const refused = yield* through(Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "Hi" })) })))
      expect(refused).toMatchObject({ code: "connector_stopped", detail: expect.stringContaining("token is invalid") })
      expect(yield* rowOf(id)).toMatchObject({ status: "stopped", poll_due_at: null })
      yield* connect(server, handle, org_id, bot)
      expect(yield* rowOf(id)).toMatchObject({ status: "connected", last_error: null })
      const events = yield* eventsOf(id)
      expect(events.map(({ type }) => type)).toEqual([
        "connector.connected",
        "connector.stopped",
        "connector.recovered",
      ])
      const account = { platform: "mastodon", account: (yield* rowOf(id))!.account }
      const of = { ...account, account_id: (yield* rowOf(id))!.account_id, service: server.base }
      const { capabilities } = (yield* rowOf(id))!
      expect(events.map(({ data }) => data)).toEqual([
        { ...of, connected_via: "oauth", capabilities },
        {
          ...account,
          error: expect.stringContaining("token is invalid"),
          remedy: expect.stringContaining("authorize"),
        },
        of,
      ])
    }),
  )

  it.effect("stops when its profile is no longer marked as automated, and recovers when it is", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, actor, bot } = yield* connectedIdentity(server, "dan", true)
      bot.bot = false
      yield* TestClock.setTime((yield* rowOf(id))!.check_due_at!.getTime())
      yield* waitUntil(rowOf(id), (row) => row?.status === "stopped", "1 second")
      expect(yield* rowOf(id)).toMatchObject({
        disclosed: false,
        last_error: expect.stringContaining("no longer says"),
      })
      for (const paused of [true, false]) {
        yield* ask(actor.Pause({ org_id, paused, everyone: true }))
        const { poll_due_at, check_due_at } = (yield* rowOf(id))!
        expect([poll_due_at, check_due_at === null]).toEqual([null, paused])
      }
      bot.bot = true
      yield* TestClock.setTime((yield* rowOf(id))!.check_due_at!.getTime())
      yield* waitUntil(rowOf(id), (row) => row?.status === "connected", "1 second")
      expect((yield* eventsOf(id)).map(({ type }) => type)).toEqual([
        "connector.connected",
        "connector.stopped",
        "connector.recovered",
      ])
    }),
  )

  it.effect("posts once for a retried command", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "eve")
      const post = { org_id, ...(yield* newPost({ text: "Once" })) }
      const first = yield* through(actor.Publish(post))
      expect(yield* through(actor.Publish(post))).toEqual(first)
      expect(server.seen.filter(({ method, path }) => method === "POST" && path === "/api/v1/statuses")).toHaveLength(1)
    }),
  )
})
