/** The actor of a Connector with a Bluesky account: connecting, Events for mentions and replies, posting, and disconnecting. */
import { layer } from "@effect/vitest"
import { onBehalfOf } from "@svc/cluster/actor/Ask"
import { Effect, Fiber } from "effect"
import { expect } from "vitest"
import { actors, makeIdentity, waitUntil } from "../../harness/Actors.ts"
import { accountHolder, makeOrg } from "../../harness/Stores.ts"
import { connectors, eventsOf, newPost, rowOf } from "../ConnectedIdentity.ts"
import { consent } from "../network/Consent.ts"
import type { Person } from "../network/Network.ts"
import { blueskyConnectors, askPlatform } from "./Connectors.ts"
import type { Context } from "./Context.ts"

export const suite = (context: Context) => {
  const { platforms, person, connected, nextPoll } = blueskyConnectors(context)
  const profileOf = ({ agent, did }: Person) =>
    Effect.promise(() =>
      agent.com.atproto.repo
        .getRecord({ repo: did, collection: "app.bsky.actor.profile", rkey: "self" })
        .then(({ data }: any) => data.value),
    )

  layer(actors({ platforms }), { timeout: "3 minutes" })("Bluesky Connector", (it) => {
    it.effect("connects with an app password without storing it", () =>
      Effect.gen(function* () {
        const { id, owner, password } = yield* connected("kay")
        const row = yield* rowOf(id)
        expect(row).toMatchObject({
          status: "connected",
          account: "kay.test",
          account_id: owner.did,
          service: context.network.pds,
          disclosed: false,
          capabilities: ["post", "reply", "thread", "notifications", "dm"],
        })
        expect(JSON.stringify(row)).not.toContain(password)
        expect((yield* eventsOf(id)).map(({ type }) => type)).toEqual(["connector.connected"])
      }),
    )

    it.effect("raises one Event for each mention, reply and direct message, and replies to the mention", () =>
      Effect.gen(function* () {
        const { org_id, id, actor } = yield* connected("lea")
        // The first poll only determines the position from which the next poll reads.
        yield* waitUntil(rowOf(id), (row) => row?.polled_at !== null, 0)
        const own = yield* askPlatform(actor.Publish({ org_id, ...(yield* newPost({ text: "Ask me." })) }))
        const mention = yield* Effect.promise(() => context.grace.post("@lea.test what is new?"))
        const parent = yield* Effect.promise(() =>
          context.grace.agent.com.atproto.repo.getRecord({
            repo: own.author_id,
            collection: "app.bsky.feed.post",
            rkey: own.uri.split("/").at(-1)!,
          }),
        )
        const answered = { uri: own.uri, cid: parent.data.cid! }
        yield* Effect.promise(() => context.grace.post("This.", { reply: { root: answered, parent: answered } }))
        const grace = yield* connected("graceful")
        yield* askPlatform(
          grace.actor.Publish({ org_id: grace.org_id, ...(yield* newPost({ text: "Psst", to: "lea.test" })) }),
        )
        yield* nextPoll(id)
        const reportedEvents = yield* waitUntil(eventsOf(id), (events) => events.length >= 4, 0)
        expect(reportedEvents.value.slice(1).map(({ type, data }) => [type, data.post.text])).toEqual([
          ["connector.mention", "@lea.test what is new?"],
          ["connector.reply", "This."],
          ["connector.dm", "Psst"],
        ])
        const reply = yield* newPost({ text: "Nothing.", reply_to: mention.uri })
        const answer = yield* askPlatform(actor.Publish({ org_id, ...reply }))
        expect(answer.reply_to).toBe(mention.uri)
        // A repeated command returns the existing post.
        expect(yield* askPlatform(actor.Publish({ org_id, ...reply }))).toEqual(answer)
        yield* nextPoll(id)
        expect(yield* eventsOf(id)).toHaveLength(4)
      }),
    )

    it.effect("neither loses nor duplicates posts while its server restarts", () =>
      Effect.gen(function* () {
        const { org_id, id, owner, actor } = yield* connected("ole")
        yield* waitUntil(rowOf(id), (row) => row?.polled_at != null, 0)
        const texts = ["one", "two", "three"]
        for (const text of texts) {
          const post = { org_id, ...(yield* newPost({ text })) }
          // The first attempt may succeed, be interrupted or not arrive; the command is repeated until it succeeds.
          const first = yield* Effect.forkChild(Effect.exit(askPlatform(actor.Publish(post))))
          yield* Effect.promise(() => context.network.stop())
          yield* Fiber.join(first)
          yield* Effect.promise(() => context.network.start())
          const made = yield* Effect.retry(askPlatform(actor.Publish(post)), { times: 5 })
          expect(made.text).toBe(text)
          yield* Effect.promise(() => context.grace.post(`@ole.test ${text}`))
        }
        const posted = yield* Effect.promise((): Promise<ReadonlyArray<string>> =>
          owner.agent.com.atproto.repo
            .listRecords({ repo: owner.did, collection: "app.bsky.feed.post" })
            .then(({ data }: any) => data.records.map(({ value }: any) => value.text)),
        )
        expect(posted.toSorted()).toEqual(texts.toSorted())
        yield* nextPoll(id)
        const { value } = yield* waitUntil(eventsOf(id, "connector.mention"), (events) => events.length >= 3, 0)
        expect(value.map(({ data }) => data.post.text)).toEqual(texts.map((text) => `@ole.test ${text}`))
      }),
    )

    it.effect("rejects what Bluesky would reject, before any call and with a matching problem", () =>
      Effect.gen(function* () {
        const { org_id, actor } = yield* connected("mia")
        const refused = Effect.fnUntraced(function* (post: Parameters<typeof newPost>[0]) {
          return yield* askPlatform(Effect.flip(actor.Publish({ org_id, ...(yield* newPost(post)) })))
        })
        expect(yield* refused({ text: "x".repeat(301) })).toMatchObject({
          code: "invalid_request",
          errors: [{ path: "/text" }],
        })
        expect(yield* refused({ text: "x", options: { bluesky: { visibility: "public" } } })).toMatchObject({
          code: "connector_option_unknown",
        })
        expect(
          yield* refused({ text: "x", reply_to: `at://${context.grace.did}/app.bsky.feed.post/3aaaaaaaaaaaa` }),
        ).toMatchObject({ code: "not_found" })
      }),
    )

    it.effect("marks the profile as automated, and reverts that and ends the session on removal", () =>
      Effect.gen(function* () {
        const { org_id, id, actor, owner } = yield* connected("nora", { disclose: true })
        expect(yield* rowOf(id)).toMatchObject({ disclosed: true })
        expect(yield* profileOf(owner)).toMatchObject({
          description: "This account is automated.",
          labels: { values: [{ val: "bot" }] },
        })
        yield* askPlatform(actor.Disconnect({ org_id }))
        expect(yield* rowOf(id)).toBeUndefined()
        expect(yield* profileOf(owner)).not.toHaveProperty("labels")
        const sessions = context.network.context().accountManager.db.db
        const remaining = yield* Effect.promise(() =>
          sessions.selectFrom("refresh_token").selectAll().where("did", "=", owner.did).execute(),
        )
        // The remaining session is that of the owner's own client.
        expect(remaining).toHaveLength(1)
      }),
    )

    it.effect("stops and raises an Event when the platform rejects its credential", () =>
      Effect.gen(function* () {
        const { org_id, id, actor, owner } = yield* connected("olga")
        const { accountManager } = context.network.context()
        yield* Effect.promise(() => accountManager.takedownAccount(owner.did, { applied: true, ref: "test" }))
        yield* askPlatform(Effect.flip(actor.Publish({ org_id, ...(yield* newPost({ text: "Hello?" })) })))
        const stopped = yield* waitUntil(eventsOf(id, "connector.stopped"), (events) => events.length > 0, 0)
        expect(stopped.value).toMatchObject([{ data: { account: "olga.test", platform: "bluesky" } }])
        expect(yield* rowOf(id)).toMatchObject({ status: "stopped", last_error: expect.any(String) })
      }),
    )

    it.effect("connects with OAuth and seals tokens and nonces", () =>
      Effect.gen(function* () {
        const org_id = yield* makeOrg
        const { id } = yield* makeIdentity(org_id, "pia")
        const owner = yield* person("pia.test")
        const actor = yield* connectors("pia", "bluesky")
        const authorization = yield* askPlatform(actor.Authorize({ org_id, account: "pia.test" }))
        const back = yield* Effect.promise(() => consent(authorization.authorization_url, owner))
        const finish = { org_id, state: authorization.state, query: back.search.slice(1), apply_disclosure: false }
        yield* askPlatform(actor.Finish(finish, onBehalfOf(accountHolder)))
        expect(yield* rowOf(id)).toMatchObject({ status: "connected", account: "pia.test" })
        const post = yield* askPlatform(actor.Publish({ org_id, ...(yield* newPost({ text: "By OAuth." })) }))
        expect(post.author_id).toBe(owner.did)
        expect(yield* askPlatform(Effect.flip(actor.Finish(finish)))).toMatchObject({ code: "connector_state_invalid" })
        yield* askPlatform(actor.Disconnect({ org_id }))
      }),
    )
  })
}
