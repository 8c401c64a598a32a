/** Tunnels in the store: which TCP port is allotted, what a change of settings touches, and which links belong to whom. */
import { ask } from "@svc/cluster/actor/Ask"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { Writes } from "@svc/cluster/store/Database"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { rows } from "../harness/Stores.ts"

const prepared = Effect.fnUntraced(function* (stem: string, org?: string) {
  const [org_id, handle] = [org ?? (yield* makeOrg), newHandle(stem)]
  const { id, actor } = yield* makeIdentity(org_id, handle)
  const port = Effect.map(
    rows<{ port: number }>((sql) => sql`select port from tunnel_port where identity_id = ${id}`),
    (found) => found.map(({ port }) => port),
  )
  return { id: id as IdentityId, org_id, handle, actor, port }
})
const free = (port: number, ago: string) =>
  Effect.flatMap(Writes, (sql) => sql`update tunnel_port set freed_at = now() - ${ago}::interval where port = ${port}`)
/** Runs the effect while another transaction uses the port. */
const whileTaken = <A, E, R>(port: number, run: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Writes, (sql) =>
    sql.withTransaction(Effect.andThen(sql`select from tunnel_port where port = ${port} for update`, run)),
  )

layer(actors({ ports: { first: 22_000, last: 22_003 } }), { timeout: "60 seconds" })("A new Identity", (it) => {
  it.effect("gets the lowest port that was never used and is not being taken, then the port that was freed first", () =>
    Effect.gen(function* () {
      yield* free(22_000, "40 days")
      yield* free(22_001, "50 days")
      const org = yield* makeOrg
      const first = yield* whileTaken(22_002, prepared("one", org))
      expect(yield* first.port).toEqual([22_003])
      for (const expected of [22_002, 22_001, 22_000]) {
        const { port } = yield* prepared("next")
        expect(yield* port).toEqual([expected])
      }
    }),
  )
})

layer(actors({ ports: { first: 21_000, last: 21_003 } }), { timeout: "60 seconds" })(
  "A port that is in use elsewhere",
  (it) => {
    it.effect("is replaced by a free one, rests then, and stays if it is another one or none is free", () =>
      Effect.gen(function* () {
        const { actor, port } = yield* prepared("moves")
        const other = yield* prepared("stays")
        const move = (from: number) => Effect.map(ask(actor.MoveTunnelPort({ port: from })), (moved) => moved.port)
        expect([yield* port, yield* other.port]).toEqual([[21_000], [21_001]])
        expect(yield* move(21_001)).toBe(21_000)
        expect(yield* move(21_000)).toBe(21_002)
        const freed = rows((sql) => sql`select port from tunnel_port where freed_at is not null order by port`)
        expect(yield* freed).toEqual([{ port: 21_000 }])
        expect([yield* port, yield* other.port]).toEqual([[21_002], [21_001]])
        // A port that was never used comes first.
        yield* free(21_000, "40 days")
        expect(yield* move(21_002)).toBe(21_003)
        expect(yield* whileTaken(21_000, move(21_003))).toBeNull()
        expect(yield* move(21_003)).toBe(21_000)
        expect(yield* move(21_000)).toBeNull()
        expect([yield* port, yield* other.port]).toEqual([[21_000], [21_001]])
      }),
    )
  },
)

const world = Layer.mergeAll(TunnelLinks.layer, CardQueries.layer).pipe(Layer.provideMerge(actors()))
layer(world, { timeout: "60 seconds" })("A Tunnel", (it) => {
  it.effect("gives its card a new version when its password is set or removed, and keeps the password otherwise", () =>
    Effect.gen(function* () {
      const [own, other] = [yield* prepared("own"), yield* prepared("other")]
      const cards = yield* CardQueries
      const version = (of: typeof own) => Effect.map(cards.read(of.id), (found) => found.version)
      const security = (of: typeof own) =>
        Effect.map(cards.profile(of.handle), ({ profile }) => JSON.stringify(profile.card).includes("securitySchemes"))
      const hash = Effect.map(
        rows<{ hash: string }>(
          (sql) => sql`select password_hash::text as hash from tunnel_setting where identity_id = ${own.id}`,
        ),
        ([row]) => row?.hash,
      )
      const patch = (change: object, of = own) => ask(of.actor.PatchTunnel({ org_id: of.org_id, patch: change }))
      yield* patch({ host_header: "rewrite" }, other)
      yield* patch({ basic_auth: { username: "ada", password: "one" } })
      expect([yield* version(own), yield* version(other)]).toEqual([2, 1])
      expect([yield* security(own), yield* security(other)]).toEqual([true, false])
      const first = yield* hash
      yield* patch({ host_header: "rewrite" })
      expect(yield* hash).toBe(first)
      yield* patch({ basic_auth: { username: "ada", password: "two" } })
      expect(yield* hash).not.toBe(first)
      expect(yield* version(own)).toBe(2)
      yield* patch({ basic_auth: null })
      expect([yield* version(own), yield* security(own), yield* version(other)]).toEqual([3, false, 1])
    }),
  )

  it.effect("has its own links, the newest first for routes and the oldest first for its owner", () =>
    Effect.gen(function* () {
      const [own, other] = [yield* prepared("linked"), yield* prepared("alone")]
      const [links, queries] = [yield* TunnelLinks, yield* TunnelQueries]
      const instance = yield* makeUuidV7
      for (const edgeId of ["edge-1", "edge-2"]) {
        yield* TestClock.adjust("1 second")
        const of = { identityId: own.id, canonical: own.handle, edgeId, edgeAddress: "127.0.0.1:9", instance }
        yield* links.attach({ ...of, id: yield* makeUuidV7, client: "test", localHost: null })
      }
      const edges = (handle: string) =>
        Effect.map(queries.standing(handle), (standing) => standing!.holders.map(({ edge_id }) => edge_id))
      expect([yield* edges(own.handle), yield* edges(other.handle)]).toEqual([["edge-2", "edge-1"], []])
      const listed = (id: IdentityId) =>
        Effect.map(queries.report(id, new Date()), ({ links }) => links.map(({ edge }) => edge))
      expect([yield* listed(own.id), yield* listed(other.id)]).toEqual([["edge-1", "edge-2"], []])
      const events = rows<{ identity_id: string; type: string }>(
        (sql) => sql`
          select identity_id, type from event where identity_id in (${own.id}, ${other.id}) and type like 'tunnel.%' order by seq`,
      )
      for (const { actor } of [other, own, own]) yield* ask(actor.TunnelChanged())
      expect(yield* events).toEqual([{ identity_id: own.id, type: "tunnel.connected" }])
      // A lease that ends exactly now is over.
      const sql = yield* Writes
      yield* sql`update tunnel_link set lease_until = now() where edge_id = 'edge-2'`
      expect([yield* edges(own.handle), yield* listed(own.id)]).toEqual([["edge-1"], ["edge-1"]])
      yield* sql`update tunnel_link set lease_until = now() where canonical = ${own.handle}`
      yield* ask(own.actor.TunnelChanged())
      expect((yield* events).map(({ type }) => type)).toEqual(["tunnel.connected", "tunnel.disconnected"])
    }),
  )

  it.effect("is reported as connected without a link only if its Identity is ready and has none", () =>
    Effect.gen(function* () {
      const links = yield* TunnelLinks
      const [offline, linked, deleting] = [yield* prepared("off"), yield* prepared("on"), yield* prepared("gone")]
      yield* links.attach({
        id: yield* makeUuidV7,
        identityId: linked.id,
        canonical: linked.handle,
        edgeId: "edge-1",
        edgeAddress: "127.0.0.1:9",
        instance: yield* makeUuidV7,
        client: "test",
        localHost: null,
      })
      yield* prepared("never")
      const sql = yield* Writes
      yield* sql`
        update identity set tunnel_connected = true, status = case when id = ${deleting.id} then 'deleting' else status end
        where id in (${offline.id}, ${linked.id}, ${deleting.id})`
      expect(yield* links.unlinked).toEqual([offline.handle])
    }),
  )
})
