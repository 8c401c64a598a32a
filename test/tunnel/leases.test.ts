/**
 * Links whose edge crashes or becomes unreachable when the store and the actor have different knowledge (docs/crash-matrix.md). One edge
 * uses real sockets; the test's clock triggers its checks.
 */
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { Health } from "@svc/cluster/health/Health"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { AgentKeys } from "@svc/cluster/proof/AgentKeys"
import { TunnelDocuments } from "@svc/cluster/proof/TunnelDocuments"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import { makeUuidV7 } from "@svc/domain/Ids"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import * as BackgroundEffects from "@svc/tunnel-edge/edge/BackgroundEffects"
import * as Edge from "@svc/tunnel-edge/edge/Edge"
import * as Leases from "@svc/tunnel-edge/edge/links/Leases"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import { path, upgradeToken } from "@svc/tunnel-edge/protocol/Manifest"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { actors, awaitFiber, identityOf, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { interruptAtLock } from "../harness/InterruptedStatement.ts"
import { portRange } from "../harness/Ports.ts"
import * as Public from "../harness/Public.ts"
import { rows } from "../harness/Stores.ts"
import { edgeSettings } from "./StubbedDeployment.ts"

const [first, last] = portRange().split("-").map(Number)
const world = Layer.mergeAll(
  TunnelLinks.layer,
  TunnelUsage.layer,
  Health.layer,
  RefusedCredentials.layer,
  Layer.mock(PublicLimits)({}),
  TunnelDocuments.layer,
  Layer.mock(AgentKeys)({ cached: () => undefined }),
).pipe(
  Layer.provideMerge(Audit.layer({ addresses: "full" })),
  Layer.provideMerge(actors({ ports: { first: first!, last: last! } })),
)

/** Runs the work with an edge, which is shut down regularly afterwards. */
const withEdge = <A, E, R>(work: (port: number, scope: Scope.Closeable) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const { port } = Context.get(yield* Layer.buildWithScope(Layer.fresh(Edge.layer(edgeSettings)), scope), Edge.Edge)
    const leaves = Effect.gen(function* () {
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* awaitFiber(closing)
    })
    return yield* Effect.ensuring(work(port, scope), leaves)
  })

const eventsOf = (identity: string) =>
  Effect.map(
    rows<{ type: string }>(
      (sql) => sql`select type from event where identity_id = ${identity} and type like 'tunnel.%' order by seq`,
    ),
    (events) => events.map(({ type }) => type),
  )
const linksOf = (name: string) =>
  rows<{ edge_id: string; lease_until: Date }>(
    (sql) => sql`select edge_id, lease_until from tunnel_link where canonical = ${name}`,
  )

/** Inserts a lease of an edge that no longer runs. */
const leased = Effect.fnUntraced(function* (identityId: string, canonical: string) {
  const links = yield* TunnelLinks
  const id = yield* makeUuidV7
  const instance = yield* makeUuidV7
  yield* links.attach({
    id,
    identityId,
    canonical,
    edgeId: yield* makeUuidV7,
    edgeAddress: "127.0.0.1:9",
    instance,
    client: "test",
    localHost: null,
  })
  return id
})

layer(world, { timeout: "90 seconds" })("a link", (it) => {
  const prepared = Effect.fnUntraced(function* (stem: string) {
    const org = yield* makeOrg
    const handle = newHandle(stem)
    const { id, actor } = yield* makeIdentity(org, handle)
    const { identity_key } = yield* (yield* IdentityQueries).secrets(org, handle)
    return { id, handle, actor, key: identity_key! }
  })
  const agentAt = (port: number, key: string) =>
    Effect.acquireRelease(
      Effect.gen(function* () {
        const agent = connectTunnel({
          key,
          links: 1,
          edge: `http://connect.tunnel.localhost:${port}`,
          handler: (_: unknown, outgoing: { end: (text: string) => void }) => outgoing.end("here"),
        })
        yield* Effect.promise(() => agent.ready)
        return agent
      }),
      (agent) => Effect.promise(() => agent.close()),
    )

  it.effect("is no route for requests after its lease has expired", () =>
    Effect.gen(function* () {
      const { id, handle } = yield* prepared("hedy")
      yield* leased(id, handle)
      const holders = Effect.map((yield* TunnelQueries).standing(handle), (standing) => standing?.holders.length)
      expect(yield* holders).toBe(1)
      yield* (yield* Writes)`update tunnel_link set lease_until = now() where canonical = ${handle}`
      expect(yield* holders).toBe(0)
    }),
  )

  it.effect("serves the card of a ready Identity only", () =>
    Effect.gen(function* () {
      const { handle } = yield* prepared("lise")
      const card = (yield* TunnelQueries).cardOf(handle)
      expect(yield* card).toMatchObject({ version: 1 })
      yield* (yield* Writes)`update identity set status = 'deleting' where canonical = ${handle}`
      expect(yield* card).toBeUndefined()
    }),
  )

  it.effect("leaves a lease that is swept when its edge dies while attaching, and the agent can reconnect", () =>
    Effect.gen(function* () {
      const { id, handle, key } = yield* prepared("ada")
      yield* leased(id, handle)
      const sql = yield* Writes
      yield* sql`update tunnel_link set lease_until = now() - interval '1 second' where canonical = ${handle}`
      yield* withEdge((port) =>
        Effect.gen(function* () {
          yield* waitUntil(linksOf(handle), (links) => links.length === 0, Timing.linkRenew)
          expect(yield* eventsOf(id)).toEqual([])
          const connected = Effect.gen(function* () {
            yield* agentAt(port, key)
            yield* waitUntil(eventsOf(id), (types) => types.length > 0, 0)
            expect(yield* eventsOf(id)).toEqual(["tunnel.connected"])
          })
          yield* Effect.scoped(connected)
          yield* waitUntil(eventsOf(id), (types) => types.length > 1, 0)
        }),
      )
      expect(yield* eventsOf(id)).toEqual(["tunnel.connected", "tunnel.disconnected"])
    }),
  )

  it.effect("is refused by a draining edge on a connection that was opened before", () =>
    Effect.gen(function* () {
      const { handle, key } = yield* prepared("mary")
      yield* withEdge((port, scope) =>
        Effect.gen(function* () {
          const { say } = yield* Effect.promise(() => Public.openConnection(port))
          // The edge accepts connections in their order, so it has accepted the first when it responds to the second.
          yield* Effect.promise(() => Public.fetchPublic(port, handle, "/"))
          // The drain waits for the test's clock.
          const draining = yield* Effect.forkChild(Scope.close(scope, Exit.void))
          yield* Effect.yieldNow
          const head = `GET ${path} HTTP/1.1\r\nHost: connect.tunnel.localhost\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\nAuthorization: Bearer ${key}\r\n\r\n`
          const late = yield* Effect.promise(() => say(head, /"code":|101/))
          expect(late).toMatch(/^HTTP\/1\.1 503 [^]*"code":"unavailable"/)
          expect(yield* linksOf(handle)).toEqual([])
          yield* awaitFiber(draining)
        }),
      )
    }),
  )

  it.effect("is refused with the reason, and takes no lease then", () =>
    Effect.gen(function* () {
      const { handle, key } = yield* prepared("emmy")
      const failed = yield* prepared("sofia")
      yield* (yield* Writes)`update identity set status = 'failed' where canonical = ${failed.handle}`
      yield* withEdge((port) =>
        Effect.gen(function* () {
          const dial = (fields: ReadonlyArray<string>, upgrade: string = upgradeToken) =>
            Effect.promise(() =>
              Public.sendRaw(
                port,
                `${[`GET ${path} HTTP/1.1`, "Host: connect.tunnel.localhost", "Connection: Upgrade", `Upgrade: ${upgrade}`, ...fields].join("\r\n")}\r\n\r\n`,
                /"code":|101/,
              ),
            )
          const bearer = (token: string) => `Authorization: Bearer ${token}`
          for (const [fields, upgrade, status, code] of [
            [[bearer(key)], "idt/2", 426, "tunnel_client_outdated"],
            [[], upgradeToken, 401, "unauthenticated"],
            [["Authorization: Basic eDp5"], upgradeToken, 401, "unauthenticated"],
            [[bearer(`${key}x`)], upgradeToken, 401, "unauthenticated"],
            [[bearer(failed.key)], upgradeToken, 409, "identity_not_ready"],
            [[bearer(key), `svc-tunnel-handle: ${failed.handle}`], upgradeToken, 403, "foreign_identity"],
          ] as const) {
            const answer = yield* dial(fields, upgrade)
            expect([answer.slice(9, 12), /"code":"(\w+)"/.exec(answer)?.[1]]).toEqual([String(status), code])
          }
          expect([...(yield* linksOf(handle)), ...(yield* linksOf(failed.handle))]).toEqual([])
          // An agent that says nothing of itself is accepted, and its second link on this edge is not.
          expect(yield* dial([bearer(key)])).toMatch(/^HTTP\/1\.1 101 /)
        }),
      )
      yield* (yield* Writes)`update identity set status = 'ready' where canonical = ${failed.handle}`
    }),
  )

  it.effect("whose removal the actor was not notified of is reported by the sweep of another edge", () =>
    Effect.gen(function* () {
      const { id, handle, actor } = yield* prepared("grace")
      const link = yield* leased(id, handle)
      yield* ask(actor.TunnelChanged())
      expect(yield* eventsOf(id)).toEqual(["tunnel.connected"])
      // The edge detached the link and crashed before it informed the actor.
      yield* (yield* TunnelLinks).detach([link])
      yield* withEdge(() => waitUntil(eventsOf(id), (types) => types.length > 1, Timing.linkRenew))
      expect(yield* eventsOf(id)).toEqual(["tunnel.connected", "tunnel.disconnected"])
    }),
  )

  it.effect("whose removal the actor may have been notified of is reported at the second sweep that finds it", () =>
    Effect.gen(function* () {
      const notified: Array<string> = []
      let found: ReadonlyArray<string> = ["ada", "grace"]
      const of = (name: string) => (notified.push(name), { TunnelChanged: () => Effect.void })
      const { sweep } = yield* Leases.make({
        self: { id: "edge", address: "127.0.0.1:9", isDraining: false },
        registry: Registry.make(() => 0),
        running: yield* BackgroundEffects.make,
        ports: undefined as never,
        allotted: undefined as never,
      }).pipe(
        Effect.provideService(Identities, { of } as never),
        Effect.provideService(TunnelLinks, {
          sweep: Effect.succeed(["expired"]),
          unlinked: Effect.sync(() => found),
        } as never),
      )
      yield* sweep
      expect(notified).toEqual(["expired"])
      found = ["grace", "joan"]
      yield* sweep
      expect(notified.slice(1)).toEqual(["expired", "grace"])
      found = ["ada"]
      yield* sweep
      expect(notified.slice(3)).toEqual(["expired"])
    }).pipe(Effect.scoped),
  )

  it.effect(
    "that the actor was not notified of is reported by the next renewal, and continues while the store is unreachable",
    () =>
      Effect.gen(function* () {
        const { id, handle, key } = yield* prepared("joan")
        yield* withEdge((port) =>
          Effect.gen(function* () {
            yield* agentAt(port, key)
            const answer = Effect.promise(() => Public.fetchPublic(port, handle, "/"))
            yield* waitUntil(eventsOf(id), (types) => types.length > 0, 0)
            // The state if the actor was unavailable when the link connected.
            const sql = yield* Writes
            yield* sql`update identity set tunnel_connected = false where id = ${id}`
            const connected = rows<{ is: boolean }>(
              (s) => s`select tunnel_connected as is from identity where id = ${id}`,
            )
            yield* waitUntil(connected, ([row]) => row!.is, Timing.linkRenew)

            const before = (yield* linksOf(handle))[0]!
            // A renewal whose database connection is closed.
            yield* interruptAtLock(Effect.void, "tunnel_link", { step: Timing.linkRenew })
            expect((yield* answer).body).toBe("here")
            const renewed = waitUntil(
              linksOf(handle),
              ([link]) => link!.lease_until > before.lease_until,
              Timing.linkRenew,
            )
            const [after] = (yield* renewed).value
            expect(after!.edge_id).toBe(before.edge_id)
            // The lease was not renewed in time, and another edge removed it.
            yield* sql`delete from tunnel_link where canonical = ${handle}`
            yield* waitUntil(linksOf(handle), ([link]) => link !== undefined, Timing.linkRenew)
            expect((yield* answer).body).toBe("here")
          }).pipe(Effect.scoped),
        )
        expect((yield* identityOf(handle))!.status).toBe("ready")
      }),
  )

  it.effect("keeps its lease when two renewals restore it concurrently", () =>
    Effect.gen(function* () {
      const { id, handle } = yield* prepared("edith")
      const links = yield* TunnelLinks
      const link = {
        id: yield* makeUuidV7,
        identityId: id,
        canonical: handle,
        edgeId: yield* makeUuidV7,
        edgeAddress: "127.0.0.1:9",
        instance: yield* makeUuidV7,
        client: "test",
        localHost: null,
      }
      const both = Effect.all([links.restore(link), links.restore(link)], { concurrency: 2 })
      const restored = { restored: true, successor: null }
      expect(yield* both).toEqual([restored, restored])
      expect(yield* linksOf(handle)).toHaveLength(1)
      // A link is not restored if a link of another process has replaced it. Only deleting the Identity closes the link.
      yield* links.detach([link.id])
      const other = yield* leased(id, handle)
      const sql = yield* Writes
      const [row] = yield* sql<{ instance: string }>`select instance from tunnel_link where id = ${other}`
      expect(yield* links.restore(link)).toEqual({
        restored: false,
        successor: { instance: row!.instance, client: "test" },
      })
      // An expired lease of another process does not replace the link.
      yield* sql`update tunnel_link set lease_until = now() - interval '1 second' where id = ${other}`
      expect(yield* links.restore(link)).toEqual(restored)
      expect(yield* links.renew([link.id])).toHaveProperty("size", 1)
      yield* sql`update identity set status = 'deleting' where id = ${id}`
      expect(yield* links.renew([link.id])).toHaveProperty("size", 0)
      yield* sql`delete from tunnel_link where canonical = ${handle}`
      expect(yield* links.restore(link)).toEqual({ restored: false, successor: null })
      yield* sql`update identity set status = 'ready' where id = ${id}`
    }),
  )
})
