import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Identities } from "@svc/cluster/actor/Identities"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, identityOf, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"
import { ErrorResponse } from "./mastodon/Exchange.ts"
import { mastodonServer, connectedIdentity, rowOf } from "./ConnectedIdentity.ts"

const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

interface Revocation {
  readonly attempts: number
  readonly credential: Uint8Array | null
  readonly due_at: Date | null
  readonly last_error: string | null
}
const revocations = (identity: string) =>
  rows<Revocation>((sql) => sql`select * from connector_revocation where identity_id = ${identity}`)

layer(watched)("an unused credential", (it) => {
  it.effect("is revoked as soon as the platform is reachable again, even after its Connector is removed", () =>
    Effect.gen(function* () {
      let isAway = false
      const server = yield* mastodonServer({
        instead: (request) => {
          if (isAway) request.socket.destroy()
          return isAway
        },
      })
      const { id, org_id, actor } = yield* connectedIdentity(server, "ada")
      isAway = true
      yield* ask(actor.Disconnect({ org_id }), Timing.askPlatform)
      expect(yield* rowOf(id)).toBeUndefined()
      expect(yield* revocations(id)).toMatchObject([{ attempts: 1, last_error: expect.stringContaining("reach") }])
      expect(server.tokens.size).toBe(1)
      isAway = false
      yield* waitUntil(revocations(id), (remaining) => remaining.length === 0, "1 second")
      expect(server.tokens.size).toBe(0)
    }),
  )

  it.effect("is revoked although the platform refuses to take the disclosure back", () =>
    Effect.forEach([403, 404, 422], (status) =>
      Effect.gen(function* () {
        const server = yield* mastodonServer()
        const { id, org_id, actor, bot } = yield* connectedIdentity(server, `fay${status}`, true)
        server.settings.before = (path) =>
          path === "/api/v1/accounts/update_credentials"
            ? Promise.reject(new ErrorResponse(status, "not here"))
            : Promise.resolve()
        yield* ask(actor.Disconnect({ org_id }), Timing.askPlatform)
        expect([server.tokens.size, bot.bot, yield* revocations(id)]).toEqual([0, true, []])
      }),
    ),
  )

  it.effect("is erased after the last attempt, and the row records the error", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, actor } = yield* connectedIdentity(server, "bea")
      server.settings.before = (path) => {
        if (path === "/oauth/revoke") throw new Error("broken")
        return Promise.resolve()
      }
      yield* ask(actor.Disconnect({ org_id }), Timing.askPlatform)
      for (let tries = 1; tries <= Timing.revocationWaitsMillis.length; tries++) {
        const [row] = yield* revocations(id)
        expect(row).toMatchObject({ attempts: tries })
        yield* TestClock.setTime(row!.due_at!.getTime())
        yield* waitUntil(revocations(id), ([later]) => later!.attempts > tries, "1 second")
      }
      expect(yield* revocations(id)).toMatchObject([
        { credential: null, due_at: null, last_error: expect.stringContaining("broken") },
      ])
    }),
  )

  it.effect("is revoked by the teardown before the Identity is removed", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, id, bot, handle } = yield* connectedIdentity(server, "cal", true)
      yield* ask((yield* Identities).of(handle).Delete({ org_id }))
      yield* waitUntil(identityOf(handle), (row) => row === undefined, "100 millis")
      expect(server.tokens.size).toBe(0)
      expect(bot.bot).toBe(false)
      expect(yield* revocations(id)).toEqual([])
    }),
  )

  it.effect("delays a teardown for a few attempts only, and is retried without the Identity", () =>
    Effect.gen(function* () {
      let isAway = false
      const server = yield* mastodonServer({
        instead: (request) => {
          if (isAway) request.socket.destroy()
          return isAway
        },
      })
      const { org_id, id, handle } = yield* connectedIdentity(server, "dan")
      isAway = true
      yield* ask((yield* Identities).of(handle).Delete({ org_id }))
      yield* waitUntil(identityOf(handle), (row) => row === undefined, "1 second")
      expect((yield* revocations(id))[0]?.credential).not.toBeNull()
      isAway = false
      yield* waitUntil(revocations(id), (remaining) => remaining.length === 0, "5 seconds")
      expect(server.tokens.size).toBe(0)
    }),
  )
})
