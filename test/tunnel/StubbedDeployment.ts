/** Edges of one deployment in this process: services are stubs, sockets and agents are real. */
import { type AddressInfo, createServer } from "node:net"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Identities } from "@svc/cluster/actor/Identities"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Health } from "@svc/cluster/health/Health"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { AgentKeys } from "@svc/cluster/proof/AgentKeys"
import { TunnelDocuments } from "@svc/cluster/proof/TunnelDocuments"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { tunnelKey, TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import { unlimited } from "@svc/domain/account/Scope"
import { Addresses } from "@svc/domain/Addresses"
import { defaultSettings } from "@svc/domain/tunnel/Tunnel"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import * as Edge from "@svc/tunnel-edge/edge/Edge"
import { vi } from "vitest"
import { Context, Effect, Exit, Layer, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { eventually } from "../harness/Eventually.ts"
import { addresses } from "../harness/Stores.ts"

export const name = "ada"
export const edgeSettings: Edge.EdgeSettings = {
  host: "127.0.0.1",
  port: 0,
  sharesPort: false,
  address: undefined,
  tls: undefined,
  balancers: [],
  drainMillis: 0,
  connections: { perClient: 100, inAll: 100 },
}
/** The caller of an Admin Key without limits. */
export const adminKey = {
  kind: "admin_key",
  org: { id: "o" },
  credentialId: "k",
  keyName: null,
  grant: null,
  scopes: unlimited,
  identities: null,
  networks: null,
} as const
export const certificate = selfSigned(["*.tunnel.localhost", "connect.tunnel.localhost"], new Date())
/** A stamp of this test contains its text. */
export const sealing = {
  stamp: (purpose: string, text: string) => `${purpose}:${text}`,
  unstamp: (purpose: string, text: string) => text.slice(purpose.length + 1),
} as never

/** Functions that stop the agents and connections of a test; {@link endAll} calls them. */
export const ended: Array<() => unknown> = []
export const endAll = async () => {
  for (const end of ended.splice(0).reverse()) await end()
}

/** The deployment of the edges: one Tunnel, whose leases are kept in memory. */
export const deployment = Effect.fnUntraced(function* (environment: "development" | "production" = "development") {
  const keys = yield* Queue.unbounded<ReadonlySet<string> | undefined>()
  const did: Array<string> = []
  const note = (text: string) => Effect.sync(() => void did.push(text))
  const leases = new Map<string, { readonly edge_id: string; readonly edge_address: string }>()
  const tunnel = { port: null as number | null, settings: defaultSettings }
  const stub = <S>(service: unknown, methods: object) => Layer.succeed(service as never, methods as never) as S
  const services = Layer.mergeAll(
    Health.layer,
    Layer.effect(
      Addresses,
      Effect.map(Addresses, (book) => ({ ...book, environment })),
    ).pipe(Layer.provide(addresses)),
    Layer.succeed(Sealing, sealing),
    stub<Layer.Layer<Orgs>>(Orgs, {
      of: () => ({ LeaseTransfer: () => Effect.succeed({ granted: 1_000_000_000, ends_in: 0 }) }),
    }),
    stub<Layer.Layer<Identities>>(Identities, {
      of: () => ({ TunnelChanged: () => Effect.void, MoveTunnelPort: () => Effect.succeed({ port: null }) }),
    }),
    stub<Layer.Layer<TunnelUsage>>(TunnelUsage, { add: () => note("usage") }),
    stub<Layer.Layer<CredentialLookup>>(CredentialLookup, {
      resolve: () => Effect.as(note("credential"), adminKey),
    }),
    stub<Layer.Layer<TunnelQueries>>(TunnelQueries, {
      cardOf: () => Effect.undefined,
      standing: (canonical: string) =>
        Effect.sync((): Standing | undefined => {
          did.push("look-up")
          return canonical === name
            ? {
                identityId: "i",
                handle: name,
                orgId: "o",
                status: "ready",
                passwordHash: undefined,
                holders: [...leases.values()].map((lease) => ({ ...lease, local_host: null })),
                ...tunnel,
              }
            : undefined
        }),
    }),
    stub<Layer.Layer<TunnelLinks>>(TunnelLinks, {
      attach: ({ id, edgeId, edgeAddress }: { id: string; edgeId: string; edgeAddress: string }) =>
        Effect.sync(() => void leases.set(id, { edge_id: edgeId, edge_address: edgeAddress })),
      detach: (ids: ReadonlyArray<string>) => Effect.sync(() => ids.forEach((id) => leases.delete(id))),
      renew: (ids: ReadonlyArray<string>) => Effect.as(note("renewal"), new Map(ids.map((id) => [id, true]))),
      sweep: Effect.as(note("sweep"), []),
      unlinked: Effect.succeed([]),
    }),
    stub<Layer.Layer<ChangeFeed>>(ChangeFeed, { follow: () => Effect.succeed({ await: Queue.take(keys) }) }),
    stub<Layer.Layer<Audit>>(Audit, { record: () => Effect.void }),
    stub<Layer.Layer<RefusedCredentials>>(RefusedCredentials, { turnedAway: () => Effect.void }),
    Layer.mock(PublicLimits)({}),
    Layer.mock(TunnelDocuments)({}),
    Layer.mock(AgentKeys)({ cached: () => undefined }),
  )

  /** Starts an edge. `close` shuts it down. */
  const edge = Effect.fnUntraced(function* (settings: Partial<Edge.EdgeSettings> = {}) {
    const scope = yield* Scope.make()
    const layer = Edge.layer({ ...edgeSettings, ...settings })
    const context = yield* Layer.buildWithScope(Layer.fresh(Layer.provide(layer, services)), scope)
    let isClosed = false
    const close = Effect.gen(function* () {
      const closing = yield* Effect.forkDetach(
        Effect.andThen(
          Scope.close(scope, Exit.void),
          Effect.sync(() => (isClosed = true)),
        ),
      )
      return closing
    })
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        if (!isClosed) yield* close
        while (!isClosed) yield* passes(100)
      }),
    )
    return { port: Context.get(context, Edge.Edge).port, close, isClosed: () => isClosed }
  })

  /** Connects an agent with one link and waits for it. */
  const agent = Effect.fnUntraced(function* (port: number, secure = false) {
    const origin = createServer((socket) =>
      socket
        .on("error", () => {})
        .on("data", (bytes) => {
          if (bytes.toString("latin1").startsWith("GET /"))
            socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
        }),
    )
    yield* Effect.promise(() => new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve)))
    const tunnel = connectTunnel({
      key: "key",
      handle: name,
      links: 1,
      edge: `${secure ? "https" : "http"}://connect.tunnel.localhost:${port}`,
      port: (origin.address() as AddressInfo).port,
      ...(secure ? { ca: certificate.cert } : {}),
    })
    ended.push(() => (origin.close(), tunnel.close()))
    yield* Effect.promise(() => tunnel.ready)
    return tunnel
  })
  const changed = (canonical: string) => Queue.offer(keys, new Set([tunnelKey(canonical)]))
  return { did, leases, tunnel, edge, agent, changed }
})

/** Lets the time of the clock and of the system pass. */
export const passes = Effect.fnUntraced(function* (millis: number) {
  if (vi.isFakeTimers()) vi.advanceTimersByTime(millis)
  yield* TestClock.adjust(millis)
  yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
})
export const until = <A>(read: () => A | Promise<A>, holds: (value: A) => boolean) =>
  Effect.promise(() => eventually(async () => read(), holds))
