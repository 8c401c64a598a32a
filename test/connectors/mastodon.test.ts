import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import { Timing } from "@svc/cluster/Timing"
import { Writes } from "@svc/cluster/store/Database"
import { Clock, Effect, Fiber } from "effect"
import { actors, awaitFiber, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { rows } from "../harness/Stores.ts"
import {
  connect,
  connectedIdentity,
  connectors,
  eventsOf,
  mastodonServer,
  newPost,
  rowOf,
} from "./ConnectedIdentity.ts"

const askPlatform = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

layer(actors())("Mastodon account", (it) => {
  it.effect("connects with OAuth and PKCE, and seals the token", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, bot } = yield* connectedIdentity(server, "ada")
      const row = yield* rowOf(id)
      expect(row).toMatchObject({
        status: "connected",
        account: `botada@${new URL(server.base).host}`,
        account_id: bot.id,
        service: server.base,
        disclosed: false,
        capabilities: ["post", "reply", "thread", "notifications", "dm"],
      })
      const [token] = server.tokens.keys()
      expect(JSON.stringify(row)).not.toContain(token)
      expect((yield* eventsOf(id)).map(({ type }) => type)).toEqual(["connector.connected"])
    }),
  )

  it.effect("shows the rules of the instance, and accepts each state once", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const [org_id, handle] = [yield* makeOrg, newHandle("bea")]
      yield* makeIdentity(org_id, handle)
      const actor = yield* connectors(handle)
      const start = yield* askPlatform(
        actor.Authorize({ org_id, account: `bea@${new URL(server.base).host}` }).pipe(Effect.flip),
      )
      // A host without a scheme means https, which the test's server does not support.
      expect(start).toMatchObject({ code: "connector_platform_error", agent_hint: "wait" })
      const authorization = yield* askPlatform(actor.Authorize({ org_id, account: server.base }))
      expect(authorization.instance_rules).toEqual([
        { id: "1", text: "Be kind", hint: null },
        { id: "2", text: "Say that you are a machine", hint: "In the profile" },
      ])
      const url = new URL(authorization.authorization_url)
      expect(url.searchParams.get("code_challenge_method")).toBe("S256")
      const back = new URL(server.allow(authorization.authorization_url, server.world.join("bea")))
      const finish = { org_id, state: authorization.state, query: back.search.slice(1), apply_disclosure: false }
      yield* askPlatform(actor.Finish(finish))
      expect(yield* askPlatform(Effect.flip(actor.Finish(finish)))).toMatchObject({ code: "connector_state_invalid" })
    }),
  )

  it.effect("does not finish an authorization that has expired", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const [org_id, handle] = [yield* makeOrg, newHandle("late")]
      const { id } = yield* makeIdentity(org_id, handle)
      const actor = yield* connectors(handle)
      const before = yield* Clock.currentTimeMillis
      const authorization = yield* askPlatform(actor.Authorize({ org_id, account: server.base }))
      const left = authorization.expires_at.getTime() - before
      expect(Math.round(left / 60_000)).toBe(15)
      const back = new URL(server.allow(authorization.authorization_url, server.world.join("late")))
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`update connector_authorization set expires_at = to_timestamp(0) where identity_id = ${id}`,
      )
      const finish = { org_id, state: authorization.state, query: back.search.slice(1), apply_disclosure: false }
      expect(yield* askPlatform(Effect.flip(actor.Finish(finish)))).toMatchObject({ code: "connector_state_invalid" })
    }),
  )

  it.effect("posts, mentions the author in replies, and reads conversations as text", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "cal")
      const host = new URL(server.base).host
      const grace = server.world.join("grace@elsewhere.example")
      const question = server.world.publish(grace, "What is <B8>,\n@botcal?", { visibility: "unlisted" })
      const answer = yield* askPlatform(
        actor.Publish({ org_id, ...(yield* newPost({ text: "It is -1/30.", reply_to: question.uri })) }),
      )
      expect(answer).toMatchObject({
        author: `botcal@${host}`,
        text: "@grace@elsewhere.example It is -1/30.",
        reply_to: question.uri,
      })
      // A reply is not more visible than the post that it replies to.
      expect([...server.world.statuses.values()].at(-1)).toMatchObject({ visibility: "unlisted" })
      const thread = yield* askPlatform(actor.ReadThread({ org_id, uri: answer.uri }))
      expect(thread.entries[0]).toEqual({
        uri: question.uri,
        url: `${server.base}/@grace@elsewhere.example/${question.id}`,
        author_id: grace.id,
        author: "grace@elsewhere.example",
        author_name: grace.username.toUpperCase(),
        text: "What is <B8>,\n@botcal?",
        reply_to: null,
        created_at: new Date(question.at),
      })
      expect(thread.entries.map(({ text }) => text)).toEqual([
        "What is <B8>,\n@botcal?",
        "@grace@elsewhere.example It is -1/30.",
      ])
    }),
  )

  it.effect("posts media with descriptions and rejects unknown options", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "dan")
      const picture = { content_base64: png, content_type: "image/png", alt: "A dot" }
      yield* askPlatform(
        actor.Publish({
          org_id,
          ...(yield* newPost({ text: "Look", options: { mastodon: { media: [picture], language: "de" } } })),
        }),
      )
      expect([...server.media.values()]).toEqual([{ type: "image/png", size: 70, description: "A dot" }])
      expect([...server.world.statuses.values()].at(-1)).toMatchObject({ language: "de" })
      const calls = server.seen.length
      for (const options of [{ mastodon: { langs: ["de"] } }, { bluesky: { langs: ["de"] } }]) {
        const refused = yield* askPlatform(
          Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "Hi", options })) })),
        )
        expect(refused).toMatchObject({ code: "connector_option_unknown" })
      }
      expect(server.seen.length).toBe(calls)
    }),
  )

  it.effect("posts pictures that its server processes slowly and that exceed one mebibyte together", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ processing: 3 })
      const { org_id, actor } = yield* connectedIdentity(server, "kit")
      const content_base64 = Buffer.concat([Buffer.from(png, "base64"), Buffer.alloc(900_000)]).toString("base64")
      const media = ["One", "Two", "Three"].map((alt) => ({ content_base64, content_type: "image/png", alt }))
      const post = yield* newPost({ text: "Look", options: { mastodon: { media } } })
      const fiber = yield* Effect.forkChild(askPlatform(actor.Publish({ org_id, ...post })))
      yield* awaitFiber(fiber, "20 millis")
      yield* Fiber.join(fiber)
      const made = [...server.world.statuses.values()]
      expect(made.map(({ media: pictures }) => pictures)).toMatchObject([
        ["One", "Two", "Three"].map((description) => ({ description, size: 900_070 })),
      ])
    }),
  )

  it.effect("rejects pictures beyond the server's limits before sending anything", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "lou")
      const refusal = (media: ReadonlyArray<object>) =>
        Effect.flatMap(newPost({ text: "Look", options: { mastodon: { media } } }), (post) =>
          askPlatform(Effect.flip(actor.Publish({ org_id, ...post }))),
        )
      const picture = { content_base64: png, content_type: "image/png" }
      expect(yield* refusal([picture, { ...picture, content_type: "image/tiff" }])).toMatchObject({
        code: "invalid_request",
        errors: [{ path: "/options/mastodon/media/1/content_type", message: "The server does not accept image/tiff." }],
      })
      expect(
        yield* refusal([picture, { ...picture, content_base64: Buffer.alloc(17_000_000).toString("base64") }]),
      ).toMatchObject({ errors: [{ path: "/options/mastodon/media/1/content_base64" }] })
      for (const content_base64 of ["", "=", "a b=", "aGk===", "aGk-"]) {
        expect(yield* refusal([picture, { ...picture, content_base64 }]), content_base64).toMatchObject({
          errors: [{ path: "/options/mastodon/media/1/content_base64" }],
        })
      }
      expect(yield* refusal([picture, { ...picture, alt: "x".repeat(1_501) }])).toMatchObject({
        errors: [{ path: "/options/mastodon/media/1/alt" }],
      })
      expect(yield* refusal(Array.from({ length: 5 }, () => picture))).toMatchObject({
        errors: [{ path: "/options/mastodon/media" }],
      })
      expect(server.seen.some(({ path }) => path === "/api/v2/media" || path === "/api/v1/statuses")).toBe(false)
    }),
  )

  it.effect("rejects a text beyond the server's limit before sending it", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      server.world.characters = 60
      const { org_id, actor } = yield* connectedIdentity(server, "eve")
      const tooLong = yield* askPlatform(
        Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "é".repeat(61) })) })),
      )
      expect(tooLong).toMatchObject({ code: "invalid_request", errors: [{ path: "/text" }] })
      expect(server.seen.some(({ path }) => path === "/api/v1/statuses")).toBe(false)
      // A URL counts as 23 characters, whatever its length.
      yield* askPlatform(
        actor.Publish({
          org_id,
          ...(yield* newPost({ text: `${"👩‍👩‍👧".repeat(36)} https://example.org/${"x".repeat(10)}` })),
        }),
      )
    }),
  )

  it.effect("sends direct messages with a mention and lists conversations", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "fay")
      const grace = server.world.join("grace")
      const sent = yield* askPlatform(actor.Publish({ org_id, ...(yield* newPost({ text: "Psst", to: "@grace" })) }))
      const made = [...server.world.statuses.values()].at(-1)!
      expect(made).toMatchObject({ visibility: "direct", mentioned: [grace] })
      const page = yield* askPlatform(actor.ReadPosts({ org_id, of: "dms", limit: 50, cursor: null }))
      expect(page.entries.map(({ uri }) => uri)).toEqual([sent.uri])
      const posts = yield* askPlatform(actor.ReadPosts({ org_id, of: "posts", limit: 50, cursor: null }))
      expect(posts.entries).toEqual([])
    }),
  )

  it.effect("pages through its posts with the server's links", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor, bot } = yield* connectedIdentity(server, "gus")
      for (let n = 1; n <= 5; n++) server.world.publish(bot, `Number ${n}`)
      const read = (cursor: string | null) => askPlatform(actor.ReadPosts({ org_id, of: "posts", limit: 2, cursor }))
      const first = yield* read(null)
      const second = yield* read(first.cursor)
      expect([...first.entries, ...second.entries].map(({ text }) => text)).toEqual([
        "Number 5",
        "Number 4",
        "Number 3",
        "Number 2",
      ])
    }),
  )

  it.effect("finds a post of another server by its URI and reports a missing one", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor } = yield* connectedIdentity(server, "hal")
      const uri = "https://elsewhere.example/users/grace/statuses/7"
      const grace = server.world.join("grace@elsewhere.example")
      server.world.elsewhere.set(uri, () => server.world.publish(grace, "From afar", { uri }))
      const thread = yield* askPlatform(actor.ReadThread({ org_id, uri }))
      expect(thread.entries).toMatchObject([{ uri, author: "grace@elsewhere.example" }])
      const none = yield* askPlatform(
        Effect.flip(actor.ReadThread({ org_id, uri: "https://elsewhere.example/users/grace/statuses/8" })),
      )
      expect(none).toMatchObject({ code: "not_found" })
    }),
  )

  it.effect("marks its profile as automated, keeps the rest, and reverts that on removal", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, id, actor, bot } = yield* connectedIdentity(server, "ida", true)
      expect(bot).toMatchObject({ bot: true, note: "I compute.\n\nThis account is automated." })
      expect(yield* rowOf(id)).toMatchObject({ disclosed: true })
      expect(server.tokens.size).toBe(1)
      yield* askPlatform(actor.Disconnect({ org_id }))
      expect(bot).toMatchObject({ bot: false, note: "I compute." })
      expect(server.tokens.size).toBe(0)
      expect(yield* rowOf(id)).toBeUndefined()
    }),
  )

  it.effect("reverts the first change of its profile, also after it was connected and changed again", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, actor, bot, handle } = yield* connectedIdentity(server, "ira", true)
      // The account holder rewrites the profile, so that connecting again adds the line again.
      bot.note = "I compute more."
      yield* connect(server, handle, org_id, bot, true)
      expect(bot).toMatchObject({ bot: true, note: "I compute more.\n\nThis account is automated." })
      yield* askPlatform(actor.Disconnect({ org_id }))
      expect(bot).toMatchObject({ bot: false, note: "I compute more." })
    }),
  )

  it.effect("keeps a token that its server issued again when it is connected again", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ token: "the same token" })
      const { org_id, id, actor, bot, handle } = yield* connectedIdentity(server, "ivy")
      yield* connect(server, handle, org_id, bot)
      yield* waitUntil(
        rows((sql) => sql`select 1 from connector_revocation where identity_id = ${id}`),
        (waiting) => waiting.length === 0,
        "1 second",
      )
      expect([...server.tokens.keys()]).toEqual(["the same token"])
      yield* askPlatform(actor.Publish({ org_id, ...(yield* newPost({ text: "Still here" })) }))
    }),
  )

  it.effect("connects to a Pleroma server and refreshes its token before it expires", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ old: true, tokenSeconds: 30 })
      const { org_id, actor } = yield* connectedIdentity(server, "jim")
      const [before] = server.tokens.keys()
      // The token expires within a minute, so each call refreshes it first. Two concurrent calls use one refresh token.
      yield* Effect.all(
        [1, 2].map((n) =>
          Effect.flatMap(newPost({ text: `Hi ${n}` }), (post) => askPlatform(actor.Publish({ org_id, ...post }))),
        ),
        { concurrency: "unbounded" },
      )
      expect([...server.tokens.keys()].at(-1)).not.toBe(before)
    }),
  )
})
