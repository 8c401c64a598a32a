/**
 * The public edge, to which agents attach links and through which the public reaches them. This module assembles the
 * parts: {@link Listener} accepts connections, {@link PublicConnection} carries their requests, {@link Requests}
 * decides where a request goes, {@link Routes} finds a link to the agent, {@link RawConnections} forwards connections
 * without reading them, and {@link Leases} maintains the links. Opening and closing a link or stream uses Effect;
 * everything per chunk uses plain callbacks.
 */
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { check, pass } from "@svc/cluster/health/Health"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Timing as ClusterTiming } from "@svc/cluster/Timing"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import { monotonicOf } from "@svc/domain/MonotonicTime"
import { Addresses } from "@svc/domain/Addresses"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Clock, Context, type Duration, Effect, Layer, Schedule } from "effect"
import * as AllottedPorts from "./tcp/AllottedPorts.ts"
import { isAgent } from "./links/LinkAttachment.ts"
import * as Certificates from "./listening/Certificates.ts"
import * as ConnectionCaps from "./listening/ConnectionCaps.ts"
import * as Connections from "./listening/Connections.ts"
import { drain } from "./Drain.ts"
import * as EdgeMetrics from "./EdgeMetrics.ts"
import * as Hosts from "./routing/Hosts.ts"
import * as Leases from "./links/Leases.ts"
import * as Listener from "./listening/Listener.ts"
import * as Metering from "./Metering.ts"
import * as Peers from "./links/Peers.ts"
import { type Front, serve } from "./http/PublicHttp.ts"
import * as RawConnections from "./tcp/RawConnections.ts"
import * as Registry from "./links/Registry.ts"
import * as Requests from "./routing/Requests.ts"
import * as Routes from "./routing/Routes.ts"
import * as BackgroundEffects from "./BackgroundEffects.ts"
import type { EdgeIdentity } from "./EdgeIdentity.ts"
import * as TcpPorts from "./tcp/TcpPorts.ts"
import { Timing } from "./Timing.ts"

export interface EdgeSettings {
  readonly host: string
  /** Port to listen on; 0 selects a free port. */
  readonly port: number
  /**
   * Other edges of this machine listen on the same port, and the kernel distributes connections among them
   * (SO_REUSEPORT).
   */
  readonly sharesPort: boolean
  /** Address at which other edges reach this one (`host:port`). Defaults to the address that it listens on. */
  readonly address: string | undefined
  /** PEM texts or paths of PEM files. Files are reloaded when they change. */
  readonly tls: Listener.Certificate | undefined
  /**
   * Networks of load balancers whose connections start with a PROXY protocol header. Other edges do not belong to these
   * networks.
   */
  readonly balancers: Networks
  /** Longest time that the edge waits for requests in flight when it shuts down. */
  readonly drainMillis: number
  /** Limits on concurrent public connections. */
  readonly connections: ConnectionCaps.Caps
}

const make = Effect.fnUntraced(function* (settings: EdgeSettings) {
  const book = yield* Addresses
  const orgs = yield* Orgs
  const usage = yield* TunnelUsage
  const sealing = yield* Sealing
  const running = yield* BackgroundEffects.make
  const { run } = running
  const self: EdgeIdentity = { id: yield* makeUuidV7, address: settings.address ?? "", isDraining: false }
  const hosts = Hosts.make(book)

  const clock = yield* Clock.Clock
  const now = () => monotonicOf(clock)
  const registry = Registry.make(now)
  const connections = Connections.make()
  const caps = ConnectionCaps.make(settings.connections)
  const certificates = yield* Certificates.make(settings.tls, hosts)
  const peers = Peers.make({
    edgeId: self.id,
    connectHost: hosts.connect,
    ca: certificates.authority,
    sealing,
    registry,
    now: () => clock.currentTimeMillisUnsafe(),
    listens: (name, tcpPort) => ports.listens(name, tcpPort),
  })
  const metering = Metering.make({
    lease: (org, report) => ask(orgs.of(org).LeaseTransfer({ edge: self.id, ...report })),
    record: usage.add,
    run: running.launch,
    now,
  })
  const routes = yield* Routes.make({
    edgeId: self.id,
    registry,
    peers,
    launch: running.launch,
    // The change may be a newer process of the agent that attached to another edge.
    onChange: (name) => {
      if (registry.of(name).length === 0) return
      running.launch(leases.renew)
      running.launch(allotted.keep(name))
    },
  })
  const requests = yield* Requests.make({ hosts, routes, metering, run })
  const raw = RawConnections.make({ hosts, routes, metering, run })
  const ports = TcpPorts.make(
    settings.host,
    raw.route,
    (socket) => {
      if (!caps.admit(socket)) return false
      connections.add(socket, true)
      return true
    },
    settings.balancers,
  )
  const allotted = yield* AllottedPorts.make({ self, registry, ports, peers })
  const leases = yield* Leases.make({ self, registry, ports, allotted, running })

  const front: Front = {
    route: (head, client) => run(requests.route(head, client)),
    reroute: (head, client) => run(requests.reroute(head, client)),
    failed: requests.failed,
    upgraded: connections.upgraded,
    isLink: (head) => hosts.takesLinks(head.host) && (Peers.isPeer(head) || isAgent(head)),
    link: (head, socket, rest) => {
      connections.forget(socket)
      caps.release(socket)
      socket.on("error", () => socket.destroy())
      if (Peers.isPeer(head)) peers.accept(head, socket, rest)
      else leases.accept(head, socket, rest)
    },
  }
  const isClear = certificates.shown === undefined || book.environment === "development"
  const listener = Listener.make(certificates.shown, isClear, {
    balancers: settings.balancers,
    admit: caps.admit,
    http: (socket, proto, begun) => {
      connections.add(socket, false)
      serve(socket, proto, front, begun)
    },
    passesThrough: raw.passesThrough,
    passthrough: (socket, name) => {
      connections.add(socket, true)
      raw.passThrough(socket, name)
    },
  })
  const { drainMillis, host, sharesPort } = settings
  const port = yield* Effect.acquireRelease(
    Effect.gen(function* () {
      const port = yield* Listener.listen(listener.server, { host, port: settings.port, shares: sharesPort })
      const named = Number(/:(\d+)$/.exec(self.address)?.[1] ?? 0)
      const own = sharesPort ? yield* Listener.listen(listener.own, { host, port: named, shares: false }) : port
      if (self.address === "") self.address = `${host}:${own}`
      return port
    }),
    () => drain({ self, listener, registry, leases, peers, connections, ports, metering, drainMillis }),
  )

  const often = (work: Effect.Effect<void>, every: Duration.Input) =>
    Effect.forkScoped(Effect.repeat(work, Schedule.spaced(every)))
  yield* often(leases.recheckCredentials, Timing.judgeEvery)
  yield* often(Effect.andThen(Effect.andThen(leases.renew, leases.sweep), allotted.keepAll), ClusterTiming.linkRenew)
  yield* often(metering.flush, Timing.flushEvery)
  yield* often(routes.refreshAll, Timing.standingEvery)
  yield* EdgeMetrics.links.scoped([], () => registry.all().length)
  yield* EdgeMetrics.connections.scoped([], caps.size)
  yield* certificates.follow(listener.renew)
  return { port, links: () => registry.all().length, findings: allotted.findings }
})

export class Edge extends Context.Service<
  Edge,
  {
    readonly port: number
    readonly links: () => number
    /** Warnings for the operator, shown by the health check. */
    readonly findings: Effect.Effect<ReadonlyArray<string>>
  }
>()("@svc/tunnel-edge/edge/Edge") {}

export const layer = (settings: EdgeSettings) =>
  Layer.effect(Edge, make(settings)).pipe((edge) =>
    Layer.merge(
      edge,
      check(
        "edge",
        true,
        Effect.gen(function* () {
          const { port, links, findings } = yield* Edge
          const told = yield* findings
          if (told.length > 0) return { status: "warn" as const, detail: told.join(". ") }
          return { ...pass, detail: `listening on port ${port}, ${links()} links` }
        }),
      ).pipe(Layer.provide(edge)),
    ),
  )
