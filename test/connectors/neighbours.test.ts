/** A Connector changes its own rows only. */
import { expect, layer } from "@effect/vitest"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, waitUntil } from "../harness/Actors.ts"
import { accountHolder, rows } from "../harness/Stores.ts"
import { connect, connectedIdentity, eventsOf, mastodonServer, newPost, rowOf } from "./ConnectedIdentity.ts"
import { ErrorResponse } from "./mastodon/Exchange.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

/** Returns all rows of an Identity's Connectors. */
const stored = (id: string) =>
  rows(
    (sql) => sql`
      select 'connector' as name, to_jsonb(t) as row from connector t where identity_id = ${id}
      union all select 'pause', to_jsonb(t) from connector_pause t where identity_id = ${id}
      union all select 'heard', to_jsonb(t) from connector_heard t where identity_id = ${id}
      union all select 'authorization', to_jsonb(t) from connector_authorization t where identity_id = ${id}
      union all select 'sent', to_jsonb(t) from connector_sent t where identity_id = ${id}
      union all select 'revocation', to_jsonb(t) from connector_revocation t where identity_id = ${id}
      order by 1`,
  )

layer(watched, { timeout: "90 seconds" })("The rows of another Connector", (it) => {
  it.effect("do not change while one posts, polls, pauses, stops, recovers, reconnects and disconnects", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      let refuses = true
      server.settings.before = async (path) => {
        if (path === "/oauth/revoke" && refuses) throw new ErrorResponse(503, "busy")
      }
      const joined = Effect.fnUntraced(function* (stem: string) {
        const one = yield* connectedIdentity(server, stem, true)
        yield* waitUntil(rowOf(one.id), (row) => row?.mark != null, 0)
        return one
      })
      const own = yield* joined("acts")
      const grace = server.world.join("grace")
      // The others have a mention, a post, a pending authorization and a credential to revoke. One is paused, one has stopped.
      const [paused, stopped] = [yield* joined("rests"), yield* joined("ended")]
      for (const { id, org_id, actor, bot, handle } of [paused, stopped]) {
        server.world.publish(grace, `@${bot.acct} hello`)
        yield* waitUntil(eventsOf(id), (events) => events.some(({ data }) => "post" in data), "1 second")
        yield* through(actor.Publish({ org_id, ...(yield* newPost({ text: "mine" })) }))
        yield* connect(server, handle, org_id, bot)
        yield* through(actor.Authorize({ org_id, account: server.base }))
      }
      const pause = (of: typeof own, isPaused: boolean, everyone: boolean) =>
        ask(of.actor.Pause({ org_id: of.org_id, paused: isPaused, everyone }, onBehalfOf(accountHolder)))
      yield* pause(paused, true, false)
      const tokens = new Map(server.tokens)
      server.tokens.clear()
      const post = Effect.fnUntraced(function* (of: typeof own, text: string) {
        return yield* through(of.actor.Publish({ org_id: of.org_id, ...(yield* newPost({ text })) }))
      })
      yield* Effect.flip(post(stopped, "late"))
      for (const [token, account] of tokens) server.tokens.set(token, account)
      const sql = yield* Writes
      yield* sql`update connector_revocation set due_at = due_at + interval '1000 days', disclosure = 'kept'`
      yield* sql`update connector_sent set post = null where identity_id = ${paused.id}`
      yield* waitUntil(rowOf(stopped.id), (row) => row?.status === "stopped", 0)
      const others = Effect.all([stored(paused.id), stored(stopped.id)])
      const before = yield* others
      expect(before.map((found) => [...new Set(found.map((row) => (row as { name: string }).name))])).toEqual([
        ["authorization", "connector", "heard", "pause", "revocation", "sent"],
        ["authorization", "connector", "heard", "revocation", "sent"],
      ])
      const spares = Effect.fnUntraced(function* (what: string) {
        const now = yield* others
        expect([what, ...now]).toEqual([what, ...before])
      })

      yield* post(own, "one")
      server.settings.limited = true
      yield* Effect.flip(post(own, "two"))
      server.settings.limited = false
      yield* spares("posts")
      server.world.publish(grace, `@${own.bot.acct} hello`)
      yield* waitUntil(eventsOf(own.id), (events) => events.some(({ data }) => "post" in data), "1 second")
      yield* spares("polls")
      for (const [isPaused, everyone] of [
        [true, false],
        [false, false],
        [true, true],
        [false, true],
      ] as const)
        yield* pause(own, isPaused, everyone)
      yield* spares("pauses")
      for (const isDeclared of [false, true]) {
        own.bot.bot = isDeclared
        yield* TestClock.setTime((yield* rowOf(own.id))!.check_due_at!.getTime())
        const status = isDeclared ? "connected" : "stopped"
        yield* waitUntil(rowOf(own.id), (row) => row?.status === status, "1 second")
        yield* spares(status)
      }
      yield* connect(server, own.handle, own.org_id, own.bot)
      yield* spares("reconnects")
      const revocations = rows((sql) => sql`select 1 from connector_revocation where identity_id = ${own.id}`)
      yield* through(own.actor.Disconnect({ org_id: own.org_id }, onBehalfOf(accountHolder)))
      expect((yield* revocations).length).toBeGreaterThan(0)
      yield* spares("disconnects")
      refuses = false
      yield* waitUntil(revocations, (left) => left.length === 0, "1 second")
      yield* spares("revokes")
    }),
  )
})
