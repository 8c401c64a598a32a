import { expect, layer } from "@effect/vitest"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, waitUntil } from "../harness/Actors.ts"
import { accountHolder, rows } from "../harness/Stores.ts"
import { mastodonServer, connect, connectedIdentity, eventsOf, newPost, rowOf } from "./ConnectedIdentity.ts"
import { ErrorResponse } from "./mastodon/Exchange.ts"
import type { ServerOptions } from "./mastodon/Settings.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const textsOf = (id: string) =>
  Effect.map(eventsOf(id), (events) =>
    events.filter(({ data }) => "post" in data).map(({ data }) => data.post.text as string),
  )
const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

const kinds: Readonly<Record<string, ServerOptions>> = {
  gotosocial: { kind: "gotosocial", streaming: true },
  pleroma: { kind: "pleroma", streaming: true, tokenSeconds: 600 },
  snac: { kind: "snac" },
}

layer(watched)("a Mastodon-compatible server", (it) => {
  for (const [kind, options] of Object.entries(kinds)) {
    it.effect(`${kind}: connects, posts, replies, polls, discloses automation and revokes`, () =>
      Effect.gen(function* () {
        const server = yield* mastodonServer(options)
        const { id, org_id, actor, bot, handle } = yield* connectedIdentity(server, kind, true)
        expect(bot).toMatchObject({ bot: true, note: "I compute.\n\nThis account is automated." })
        yield* waitUntil(rowOf(id), (row) => row?.mark != null, 0)
        if (options.streaming === true) {
          yield* waitUntil(
            Effect.sync(() => server.streams.open()),
            (count) => count === 1,
            0,
          )
        }
        const grace = server.world.join("grace@elsewhere.example")
        const question = server.world.publish(grace, `@bot${kind} why?`)
        yield* waitUntil(textsOf(id), (texts) => texts.length === 1, "1 second")
        const answer = yield* through(
          actor.Publish({ org_id, ...(yield* newPost({ text: "Because.", reply_to: question.uri })) }),
        )
        expect(answer.reply_to).toBe(question.uri)
        yield* through(actor.Publish({ org_id, ...(yield* newPost({ text: "Psst", to: "grace@elsewhere.example" })) }))
        const first = yield* through(actor.ReadPosts({ org_id, of: "posts", limit: 20, cursor: null }))
        expect(first.entries.map(({ uri }) => uri)).toEqual([answer.uri])
        yield* through(actor.Disconnect({ org_id }, onBehalfOf(accountHolder)))
        expect(bot).toMatchObject({ bot: false, note: "I compute." })
        expect(server.tokens.size).toBe(0)
        // The server may have deleted the application together with the token.
        yield* connect(server, handle, org_id, bot)
        expect(yield* rowOf(id)).toMatchObject({ status: "connected" })
      }),
    )
  }

  it.effect("loses no mentions when it returns the newest page instead of the oldest", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ kind: "snac" })
      const { id } = yield* connectedIdentity(server, "ada")
      yield* waitUntil(rowOf(id), (row) => row?.mark != null, 0)
      const grace = server.world.join("grace")
      const texts = Array.from({ length: 130 }, (_, n) => `@botada ${n}`)
      for (const text of texts) server.world.publish(grace, text)
      yield* waitUntil(textsOf(id), (received) => received.length >= texts.length, "1 second")
      expect(yield* textsOf(id)).toEqual(texts)
    }),
  )

  for (const kind of ["mastodon", "gotosocial"] as const) {
    it.effect(`${kind}: posts once when the response is lost and the command is retried`, () =>
      Effect.gen(function* () {
        // The platform matches posts by the server's real time, so the test's clock starts there.
        yield* TestClock.setTime(Date.now())
        const server = yield* mastodonServer({ kind })
        const { org_id, actor } = yield* connectedIdentity(server, `lost${kind}`)
        const grace = server.world.join("grace@elsewhere.example")
        const question = server.world.publish(grace, `@botlost${kind} why?`)
        // An earlier post with the same text.
        yield* through(actor.Publish({ org_id, ...(yield* newPost({ text: "Because." })) }))
        const post = { org_id, ...(yield* newPost({ text: "Because.", reply_to: question.uri })) }
        server.settings.loses = (route) => route === "POST /api/v1/statuses"
        expect(yield* through(Effect.flip(actor.Publish(post)))).toMatchObject({ code: "connector_platform_error" })
        delete server.settings.loses
        const made = yield* through(actor.Publish(post))
        const published = [...server.world.statuses.values()].filter(({ account }) => account.acct.startsWith("bot"))
        expect(published.map(({ uri, parent }) => [uri, parent])).toEqual([
          [expect.any(String), undefined],
          [made.uri, question],
        ])
      }),
    )

    it.effect(`${kind}: posts once when the response is lost and a retry is limited`, () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(Date.now())
        const server = yield* mastodonServer({ kind })
        const { org_id, actor } = yield* connectedIdentity(server, `twice${kind}`)
        const post = { org_id, ...(yield* newPost({ text: "Once." })) }
        server.settings.loses = (route) => route === "POST /api/v1/statuses"
        expect(yield* through(Effect.flip(actor.Publish(post)))).toMatchObject({ code: "connector_platform_error" })
        delete server.settings.loses
        server.settings.limited = true
        const code = "connector_platform_rate_limited"
        expect(yield* through(Effect.flip(actor.Publish(post)))).toMatchObject({ code })
        server.settings.limited = false
        const made = yield* through(actor.Publish(post))
        expect([...server.world.statuses.values()].map(({ uri }) => uri)).toEqual([made.uri])
      }),
    )
  }

  it.effect("confirms a reply although it limits calls from the reply on", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "last")
      const question = server.world.publish(server.world.join("grace@elsewhere.example"), "@botlast why?")
      server.settings.after = async (route) => void (server.settings.limited ||= route === "POST /api/v1/statuses")
      const post = yield* newPost({ text: "Because.", reply_to: question.uri })
      expect(yield* through(actor.Publish({ org_id, ...post }))).toMatchObject({ reply_to: question.uri })
    }),
  )

  it.effect("is registered with again after it removed the application", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor, bot, id, handle } = yield* connectedIdentity(server, "bea")
      const [before] = server.applications.keys()
      yield* connect(server, handle, org_id, bot)
      expect([...server.applications.keys()]).toEqual([before])
      // An outage of the page does not mean that the application is gone.
      server.settings.before = async (path) => {
        if (path === "/oauth/authorize") throw new ErrorResponse(503, "Service Unavailable")
      }
      yield* connect(server, handle, org_id, bot)
      expect([...server.applications.keys()]).toEqual([before])
      delete server.settings.before
      yield* through(actor.Disconnect({ org_id }, onBehalfOf(accountHolder)))
      // Mastodon deletes applications that nobody has used for a day.
      server.applications.clear()
      yield* connect(server, handle, org_id, bot)
      expect(yield* rowOf(id)).toMatchObject({ status: "connected" })
      // The application is removed while the account holder allows it.
      const start = yield* through(actor.Authorize({ org_id, account: server.base }))
      const query = new URL(server.allow(start.authorization_url, bot)).search.slice(1)
      const [lost] = server.applications.keys()
      server.applications.clear()
      const finish = actor.Finish(
        { org_id, state: start.state, query, apply_disclosure: false },
        onBehalfOf(accountHolder),
      )
      expect(yield* through(Effect.flip(finish))).toMatchObject({ code: "connector_credential_refused" })
      yield* connect(server, handle, org_id, bot)
      expect([...server.applications.keys()]).not.toContain(lost)
    }),
  )

  it.effect("without token revocation is not retried for days, and the credential is erased", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ kind: "gotosocial", revokesNone: true })
      const { org_id, actor } = yield* connectedIdentity(server, "cal")
      yield* through(actor.Disconnect({ org_id }, onBehalfOf(accountHolder)))
      expect(yield* rows((sql) => sql`select id from connector_revocation where org_id = ${org_id}`)).toEqual([])
    }),
  )
})
