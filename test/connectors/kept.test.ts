/** The rows that Connectors keep beside their credential: registrations at servers, notes of a platform, and pending authorizations. */
import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import * as Registrations from "@svc/cluster/connectors/credentials/Registrations"
import { Platforms } from "@svc/cluster/connectors/platforms/Platforms"
import type { Session } from "@svc/cluster/connectors/platforms/Platform"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { actors, platforms } from "../harness/Actors.ts"
import { makeOrg, rows } from "../harness/Stores.ts"
import { connect, connectedIdentity, mastodonServer, rowOf } from "./ConnectedIdentity.ts"

const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)

/** Runs with the session of a connection, in place of reading its posts. */
let use = (_session: Session): Effect.Effect<unknown> => Effect.void
const using = Layer.effect(
  Platforms,
  Effect.map(Effect.service(Platforms), ({ of }) => ({
    of: (name) =>
      Effect.map(of(name), (platform) => ({
        ...platform,
        posts: (session) => Effect.as(use(session), { entries: [], cursor: null }),
      })),
  })),
).pipe(Layer.provide(platforms))

layer(actors({ platforms: using }), { timeout: "60 seconds" })("A registration at a server", (it) => {
  it.effect("is that of the first process that made it, and is one of the latest 50 of its Org and platform", () =>
    Effect.gen(function* () {
      const [sql, sealing] = [yield* Writes, yield* Sealing]
      const registrationsOf = Effect.fnUntraced(function* (org: string, platform: string) {
        const [row] = yield* sql<{ data_key: Uint8Array }>`select data_key from org where id = ${org}`
        const dataKey = yield* sealing.openDataKey(org, row!.data_key)
        return Registrations.make(sql, sealing, { id: org, orgId: org, handle: "ada", dataKey }, platform)
      })
      const org = yield* makeOrg
      const own = yield* registrationsOf(org, "mastodon")
      const others = [yield* registrationsOf(yield* makeOrg, "mastodon"), yield* registrationsOf(org, "bluesky")]
      const text = (found: Redacted.Redacted<string> | undefined) => found && Redacted.value(found)
      const read = (of: typeof own, service: string) => Effect.map(of.read(service), text)
      const store = (of: typeof own, service: string, registration: string) =>
        Effect.map(of.store(service, Redacted.make(registration)), text)
      for (const [n, of] of [own, ...others].entries()) expect(yield* store(of, "https://0", `${n}`)).toBe(`${n}`)
      for (const of of others) yield* store(of, "https://1", "theirs")
      expect(yield* store(own, "https://0", "later")).toBe("0")
      for (let n = 1; n < 50; n++) {
        yield* TestClock.adjust("1 second")
        yield* store(own, `https://${n}`, `own ${n}`)
      }
      expect([yield* read(own, "https://0"), yield* read(own, "https://49")]).toEqual(["0", "own 49"])
      yield* TestClock.adjust("1 second")
      yield* store(own, "https://50", "own 50")
      expect([yield* read(own, "https://0"), yield* read(own, "https://1")]).toEqual([undefined, "own 1"])
      yield* own.forget("https://1")
      expect([yield* read(own, "https://1"), yield* read(own, "https://2")]).toEqual([undefined, "own 2"])
      for (const [n, of] of others.entries())
        expect([yield* read(of, "https://0"), yield* read(of, "https://1")]).toEqual([`${n + 1}`, "theirs"])
      const plain = yield* rows((sql) => sql`select 1 from connector_registration where sealed = 'own 2'::bytea`)
      expect(plain).toEqual([])
    }),
  )
})

layer(actors({ platforms: using }), { timeout: "60 seconds" })("A connection", (it) => {
  it.effect("keeps at most 32 notes of 8 KiB, until it is replaced", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { org_id, handle, bot, actor } = yield* connectedIdentity(server, "notes")
      const beside = yield* connectedIdentity(server, "beside")
      const inSession = <A>(run: (notes: Session["notes"]) => Effect.Effect<A, unknown>, of = { org_id, actor }) =>
        Effect.gen(function* () {
          let result: A | undefined
          use = ({ notes }) => Effect.orDie(Effect.map(run(notes), (value) => (result = value)))
          yield* through(of.actor.ReadPosts({ org_id: of.org_id, of: "posts", limit: 1, cursor: null }))
          return result
        })
      const read = (name: string) => inSession((notes) => notes.read(name))
      const write = (name: string, text: string | undefined) => inSession((notes) => notes.write(name, text))
      for (const name of ["n1", "n31", "n32"]) yield* inSession((notes) => notes.write(name, "theirs"), beside)
      for (let n = 1; n <= 33; n++) yield* write(`n${n}`, `note ${n}`)
      expect([yield* read("n1"), yield* read("n32"), yield* read("n33")]).toEqual(["note 1", "note 32", undefined])
      yield* write("n32", "x".repeat(8 * 1024))
      expect(yield* read("n32")).toHaveLength(8 * 1024)
      yield* write("n32", "x".repeat(8 * 1024 + 1))
      yield* write("n31", undefined)
      expect([yield* read("n30"), yield* read("n31"), yield* read("n32")]).toEqual(["note 30", undefined, undefined])
      yield* write("n33", "note 33")
      expect(yield* read("n33")).toBe("note 33")
      yield* connect(server, handle, org_id, bot)
      expect([yield* read("n1"), yield* read("n33")]).toEqual([undefined, undefined])
      for (const name of ["n1", "n31", "n32"])
        expect(yield* inSession((notes) => notes.read(name), beside)).toBe("theirs")
      expect(yield* rows((sql) => sql`select 1 from connector_kept`)).toHaveLength(3)
    }),
  )

  it.effect("is one of the latest ten that were begun", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer()
      const { id, org_id, bot, actor } = yield* connectedIdentity(server, "begun")
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`
          insert into connector_authorization (state_hash, identity_id, platform, org_id, sealed, created_at, expires_at)
          values ('x', ${id}, 'bluesky', ${org_id}, '', 'epoch', now())`,
      )
      const started: Array<{ readonly state: string; readonly authorization_url: string }> = []
      for (let n = 0; n < 11; n++) {
        yield* TestClock.adjust("1 second")
        started.push(yield* through(actor.Authorize({ org_id, account: server.base })))
      }
      // Authorizations at another platform do not count.
      expect(yield* rows((sql) => sql`select 1 from connector_authorization where identity_id = ${id}`)).toHaveLength(
        11,
      )
      const finish = ({ state, authorization_url }: (typeof started)[number]) => {
        const query = new URL(server.allow(authorization_url, bot)).search.slice(1)
        return through(actor.Finish({ org_id, state, query, apply_disclosure: false }))
      }
      expect(yield* Effect.flip(finish(started[0]!))).toMatchObject({ code: "connector_state_invalid" })
      yield* finish(started[1]!)
      expect(yield* rowOf(id)).toMatchObject({ status: "connected" })
      // An authorization that has expired is neither found nor finished.
      const found = Effect.flatMap(ConnectorQueries, ({ authorization }) =>
        authorization(org_id, null, started[10]!.state),
      ).pipe(Effect.provide(ConnectorQueries.layer))
      yield* TestClock.adjust(Timing.authorizationMillis - 1)
      expect(yield* found).toMatchObject({ id })
      yield* TestClock.adjust(1)
      expect(yield* Effect.flip(found)).toMatchObject({ code: "connector_state_invalid" })
      expect(yield* Effect.flip(finish(started[10]!))).toMatchObject({ code: "connector_state_invalid" })
    }),
  )
})
