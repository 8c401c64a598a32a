import { describe, expect, layer } from "@effect/vitest"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { accountHolder } from "../harness/Stores.ts"
import { connectors, eventsOf, newPost, rowOf } from "./ConnectedIdentity.ts"
import { startSnac } from "./snac/Snac.ts"
import { has } from "../harness/Programs.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const eventTexts = (id: string) =>
  Effect.map(eventsOf(id), (events) =>
    events.filter(({ data }) => "post" in data).map(({ type, data }) => [type, data.post]),
  )

const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

describe.skipIf(!has("snac"))("an account at a snac server", () => {
  layer(watched)("snac", (it) => {
    it.effect("connects, posts, replies, polls and revokes, twice", () =>
      Effect.gen(function* () {
        const snac = yield* Effect.acquireRelease(
          Effect.promise(() => startSnac(["bot", "grace"])),
          (server) => Effect.promise(server.stop),
        )
        const org_id = yield* makeOrg
        const { id } = yield* makeIdentity(org_id, "ada")
        const actor = yield* connectors("ada")
        const connect = Effect.gen(function* () {
          const start = yield* through(actor.Authorize({ org_id, account: snac.base }))
          const back = yield* Effect.promise(() => snac.allow(start.authorization_url, "bot"))
          const query = new URL(back).search.slice(1)
          yield* through(
            actor.Finish({ org_id, state: start.state, query, apply_disclosure: true }, onBehalfOf(accountHolder)),
          )
        })
        yield* connect
        expect(yield* rowOf(id)).toMatchObject({
          status: "connected",
          account: `bot@${snac.host}`,
          service: snac.base,
          disclosed: true,
        })
        yield* waitUntil(rowOf(id), (row) => row?.mark != null, 0)
        const post = yield* through(actor.Publish({ org_id, ...(yield* newPost({ text: "Ask me" })) }))
        expect(post).toMatchObject({ text: "Ask me", author: `bot@${snac.host}` })

        yield* Effect.promise(() => snac.say("grace", "bot", "@bot why?"))
        const { value } = yield* waitUntil(eventTexts(id), (posts) => posts.length > 0, "30 seconds")
        const [type, mention] = value[0]!
        expect(type).toBe("connector.mention")
        expect(mention).toMatchObject({ author: `grace@${snac.host}`, text: expect.stringContaining("why?") })
        const answer = yield* through(
          actor.Publish({ org_id, ...(yield* newPost({ text: "Because.", reply_to: mention.uri })) }),
        )
        expect(answer).toMatchObject({ reply_to: mention.uri, text: expect.stringContaining("Because.") })
        const thread = yield* through(actor.ReadThread({ org_id, uri: mention.uri }))
        expect(thread.entries.map(({ uri }) => uri)).toEqual([mention.uri, answer.uri])
        const dm = yield* through(
          actor.Publish({ org_id, ...(yield* newPost({ text: "Psst", to: `grace@${snac.host}` })) }),
        )
        expect(dm.text).toContain("Psst")
        const posts = yield* through(actor.ReadPosts({ org_id, of: "posts", limit: 20, cursor: null }))
        expect(posts.entries.map(({ uri }) => uri)).toContain(post.uri)
        expect(yield* eventTexts(id)).toHaveLength(1)

        expect(snac.tokens()).toHaveLength(1)
        yield* through(actor.Disconnect({ org_id }, onBehalfOf(accountHolder)))
        expect(snac.tokens()).toEqual([])
        yield* connect
        expect(yield* rowOf(id)).toMatchObject({ status: "connected" })
      }),
    )
  })
})
