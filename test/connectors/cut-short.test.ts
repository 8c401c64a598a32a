/** Connecting an account, interrupted between the platform's action and our commit of it (docs/crash-matrix.md). */
import { expect, layer } from "@effect/vitest"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { afterwards } from "../harness/Afterwards.ts"
import { newHandle } from "../harness/Client.ts"
import { interruptAtLock } from "../harness/InterruptedStatement.ts"
import { accountHolder } from "../harness/Stores.ts"
import {
  connect,
  connectedIdentity,
  connectors,
  eventsOf,
  mastodonServer,
  newPost,
  rowOf,
} from "./ConnectedIdentity.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const unavailable = { code: "unavailable" }
const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

layer(watched, { timeout: "60 seconds" })("an interrupted connection", (it) => {
  it.effect("starts again after a crash in the middle of an authorization, whose state is no longer valid", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const org_id = yield* makeOrg
      const handle = newHandle("ada")
      const { id } = yield* makeIdentity(org_id, handle)
      const actor = yield* connectors(handle)
      const bot = server.world.join("botada", "I compute.")
      const start = yield* through(actor.Authorize({ org_id, account: server.base }))
      const query = new URL(server.allow(start.authorization_url, bot)).search.slice(1)
      const finish = through(
        actor.Finish({ org_id, state: start.state, query, apply_disclosure: true }, onBehalfOf(accountHolder)),
      )
      // The platform has issued its token before the connection is stored.
      expect(yield* interruptAtLock(finish)).toMatchObject({ _tag: "Failure", failure: unavailable })
      expect(yield* rowOf(id)).toBeUndefined()
      expect(yield* eventsOf(id)).toEqual([])
      expect([server.tokens.size, bot.note]).toEqual([1, "I compute."])
      expect(yield* Effect.flip(finish)).toMatchObject({ code: "connector_state_invalid" })
      yield* connect(server, handle, org_id, bot, true)
      expect(yield* rowOf(id)).toMatchObject({ status: "connected", disclosed: true })
    }),
  )

  it.effect("recognizes an unrecorded disclosure in the daily check and keeps it on removal", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const org_id = yield* makeOrg
      const handle = newHandle("grace")
      const { id } = yield* makeIdentity(org_id, handle)
      const actor = yield* connectors(handle)
      const bot = server.world.join("botgrace", "I compute.")
      const sql = yield* Writes
      // The error that a database returns if it shuts down during the statement.
      yield* sql`create function test_down() returns trigger language plpgsql as
        $$ begin raise exception 'terminating connection' using errcode = '57P01'; end $$`
      yield* sql`create trigger test_down before update on connector for each row
        when (new.disclosed and not old.disclosed) execute function test_down()`
      expect(yield* Effect.flip(connect(server, handle, org_id, bot, true))).toMatchObject(unavailable)
      const withDisclosure = { bot: true, note: "I compute.\n\nThis account is automated." }
      expect(bot).toMatchObject(withDisclosure)
      expect(yield* rowOf(id)).toMatchObject({ status: "connected", disclosed: false })
      yield* sql`drop trigger test_down on connector`
      yield* TestClock.setTime((yield* rowOf(id))!.check_due_at!.getTime())
      yield* waitUntil(rowOf(id), (row) => row?.disclosed === true, "1 second")
      expect(bot).toMatchObject(withDisclosure)
      // The disclosure may have been there before, so disconnecting leaves it in the profile.
      yield* through(actor.Disconnect({ org_id }, onBehalfOf(accountHolder)))
      expect(bot).toMatchObject(withDisclosure)
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("after the end of the Identity or its account that it waited for", (it) => {
  it.effect("an account is not connected, and nothing is posted", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, handle, actor, bot } = yield* connectedIdentity(server, "dora")
      yield* waitUntil(rowOf(id), (row) => row?.mark != null, 0)
      const before = yield* eventsOf(id)
      const sql = yield* Writes
      const refused = { code: "identity_not_ready", agent_hint: "stop" }
      const deleting = sql`update identity set status = 'deleting' where id = ${id}`
      const post = through(actor.Publish({ org_id, ...(yield* newPost({ text: "late" })) }))
      expect(yield* afterwards(deleting, Effect.flip(post))).toMatchObject(refused)
      expect(server.world.statuses.size).toBe(0)
      for (const end of [deleting, sql`update org set status = 'deleting' where id = ${org_id}`]) {
        yield* sql`update identity set status = 'ready' where id = ${id}`
        const connecting = connect(server, handle, org_id, bot)
        expect(yield* afterwards(end, Effect.flip(connecting))).toMatchObject(refused)
      }
      expect(yield* eventsOf(id)).toEqual(before)
    }),
  )
})
