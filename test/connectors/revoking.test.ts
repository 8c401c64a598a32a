import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Identities } from "@svc/cluster/actor/Identities"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Writes } from "@svc/cluster/store/Database"
import { Effect, Fiber, Latch, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { actors, identityOf, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"
import { ErrorResponse } from "./mastodon/Exchange.ts"
import { connect, mastodonServer, connectedIdentity, rowOf } from "./ConnectedIdentity.ts"
import { failures, login, script, scriptedActors, scriptedIdentity, status } from "./ScriptedPlatform.ts"

const { passing, refused, silence } = failures
const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)

const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

interface Revocation {
  readonly attempts: number
  readonly credential: Uint8Array | null
  readonly due_at: Date | null
  readonly disclosure: string | null
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
      const sql = yield* Writes
      yield* sql`
        insert into connector_heard
        select ${id}::uuid, platform, '\\x01', now() from unnest(array['mastodon', 'bluesky']) as platform`
      isAway = true
      yield* ask(actor.Disconnect({ org_id }), Timing.askPlatform)
      expect(yield* rowOf(id)).toBeUndefined()
      // The posts that were reported from another platform stay known.
      const heard = yield* sql`select platform from connector_heard where identity_id = ${id}`
      expect(heard).toEqual([{ platform: "bluesky" }])
      expect(yield* revocations(id)).toMatchObject([{ attempts: 1, last_error: expect.stringContaining("reach") }])
      expect(server.tokens.size).toBe(1)
      isAway = false
      yield* waitUntil(revocations(id), (remaining) => remaining.length === 0, "1 second")
      expect(server.tokens.size).toBe(0)
    }),
  )

  it.effect("is revoked after its account is connected again, and the account stays marked as automated", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, handle, bot } = yield* connectedIdentity(server, "again", true)
      const sql = yield* Writes
      yield* sql`update connector set refresh_began_at = now(), last_error = 'before' where identity_id = ${id}`
      yield* connect(server, handle, org_id, bot)
      yield* waitUntil(revocations(id), (remaining) => remaining.length === 0, "1 second")
      expect([server.tokens.size, bot.bot]).toEqual([1, true])
      expect(yield* rowOf(id)).toMatchObject({ refresh_began_at: null, last_error: null })
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

layer(scriptedActors)("a revocation", (it) => {
  const pending = (id: string) =>
    rows<Revocation>((sql) => sql`select * from connector_revocation where identity_id = ${id} order by attempts`)
  const disconnected = Effect.fnUntraced(function* (stem: string, disclosure: string | null = null) {
    const made = yield* scriptedIdentity(stem)
    const sql = yield* Writes
    yield* sql`update connector set disclosure = ${disclosure} where identity_id = ${made.id}`
    yield* through(made.actor.Disconnect({ org_id: made.org_id }))
    return made
  })
  const attempt = Effect.fnUntraced(function* (id: string) {
    const [before] = yield* pending(id)
    yield* TestClock.setTime(before!.due_at!.getTime())
    yield* waitUntil(pending(id), ([row]) => row?.attempts !== before!.attempts, "1 second")
  })

  it.effect("is repeated after a failure of the platform or of this service, and ends if it is pointless", () =>
    Effect.gen(function* () {
      for (const [n, [what, failure]] of passing.entries()) {
        script({ revoke: () => failure })
        const { id } = yield* disconnected(`revoke${n}`)
        const last_error =
          what === "a defect" ? "The revocation failed because of an error in this service." : "slow down"
        const left = what === "a missing function" ? [] : [{ attempts: 1, last_error }]
        expect([what, ...(yield* pending(id))]).toMatchObject([what, ...left])
      }
      script({ revoke: () => refused })
      expect(yield* pending((yield* disconnected("revoke")).id)).toEqual([])
    }),
  )

  it.effect("delays the reply to a disconnection for a few seconds only, and continues without it", () =>
    Effect.gen(function* () {
      const begun = yield* Latch.make()
      script({ revoke: () => Effect.andThen(begun.open, Effect.never) })
      const { id, org_id, actor } = yield* scriptedIdentity("slow")
      const reply = yield* Effect.forkChild(through(actor.Disconnect({ org_id })))
      yield* begun.await
      yield* TestClock.adjust(Timing.revokeAtOnce)
      yield* Fiber.join(reply)
      expect(yield* pending(id)).toMatchObject([{ attempts: 0 }])
      script()
      yield* waitUntil(pending(id), (remaining) => remaining.length === 0, "5 seconds")
    }),
  )

  it.effect("undoes the first change of a profile, for as long as the same account is connected", () =>
    Effect.gen(function* () {
      script()
      const { id, org_id, actor } = yield* scriptedIdentity("changes")
      const connectAgain = Effect.fnUntraced(function* (changed: string | undefined, account = status.account) {
        const credential = Redacted.make(`${changed} ${account.id}`)
        script({
          login: () => Effect.succeed({ ...status, account, via: "app_password", credential }),
          disclose: () => Effect.succeed(changed),
          inspect: () => Effect.succeed({ ...status, account, disclosed: true }),
        })
        yield* through(
          actor.Login({ org_id, account: "ada", password: "password", apply_disclosure: changed !== undefined }),
        )
        const [row] = yield* rows<{ disclosure: string | null }>(
          (sql) => sql`select disclosure from connector where identity_id = ${id}`,
        )
        return row!.disclosure
      })
      expect(yield* connectAgain("first")).toBe("first")
      expect(yield* connectAgain("second")).toBe("first")
      expect(yield* connectAgain(undefined)).toBe("first")
      expect(yield* connectAgain(undefined, { ...status.account, id: "2" })).toBeNull()
    }),
  )

  it.effect("withdraws the disclosure first and once, with the latest credential", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      // Revocations of other tests are due as well.
      yield* Effect.flatMap(Writes, (sql) => sql`delete from connector_revocation`)
      const failing = passing[1]![1]
      const note = (what: string) => Effect.sync(() => void done.push(what))
      script({ undisclose: () => Effect.andThen(note("undisclose"), failing), revoke: () => note("revoke") })
      const { id } = yield* disconnected("undoes", "line")
      expect(yield* pending(id)).toMatchObject([{ attempts: 1, disclosure: "line" }])
      script({ undisclose: () => silence[1] })
      yield* attempt(id)
      expect(yield* pending(id)).toMatchObject([{ attempts: 2, last_error: "The server did not respond in time." }])
      script({
        undisclose: (_, changed) => note(`undisclose ${changed}`),
        revoke: ({ exclusively, storeCredential }) =>
          Effect.andThen(exclusively(storeCredential(Redacted.make("second"))), failing),
      })
      yield* attempt(id)
      expect(yield* pending(id)).toMatchObject([{ attempts: 3, disclosure: null }])
      script({ revoke: () => silence[1] })
      yield* attempt(id)
      expect(yield* pending(id)).toMatchObject([{ attempts: 4, last_error: "The server did not respond in time." }])
      script({
        undisclose: () => note("again"),
        revoke: ({ credential }) => Effect.flatMap(credential, (found) => note(`revoke ${Redacted.value(found)}`)),
      })
      yield* attempt(id)
      expect(yield* pending(id)).toEqual([])
      expect(done).toEqual(["undisclose", "undisclose line", "revoke second"])
    }),
  )

  it.effect("is not attempted early because another one is due", () =>
    Effect.gen(function* () {
      script({ revoke: () => passing[1]![1] })
      const { id, org_id, handle, actor } = yield* disconnected("early")
      yield* login(handle, org_id)
      yield* through(actor.Disconnect({ org_id }))
      yield* attempt(id)
      // Attempts each once more, after the attempts that are running.
      yield* through(actor.Leave({ org_id }))
      expect((yield* pending(id)).map(({ attempts }) => attempts)).toEqual([3, 3])
    }),
  )

  it.effect("delays the end of an Identity until each credential was tried three times", () =>
    Effect.gen(function* () {
      script({ revoke: () => passing[1]![1] })
      const { id, org_id, handle, actor } = yield* disconnected("leaves")
      const sql = yield* Writes
      yield* sql`update connector_revocation set attempts = 4 where identity_id = ${id}`
      yield* login(handle, org_id)
      const revoked: Array<boolean> = []
      for (let n = 0; n < 3; n++) revoked.push((yield* through(actor.Leave({ org_id }))).revoked)
      expect(revoked).toEqual([false, false, true])
      expect((yield* pending(id)).map(({ attempts }) => attempts)).toEqual([3, 7])
      expect(yield* rowOf(id)).toBeUndefined()
    }),
  )
})
