/**
 * The public edge: agents attach their links here, the public reaches them through here. This file puts the parts
 * together and answers in an agent's place; {@link Routes} finds the way of a request, {@link Registry} chooses among
 * links, {@link RequestHead} says what passes. Effect where a link or a stream opens or closes, plain callbacks between.
 */
import { readFile } from "node:fs/promises"
import type { Socket } from "node:net"
import { Addresses } from "@svc/domain/Addresses"
import { a2aDocument, fieldsOf, StoredCard } from "@svc/domain/card/Card"
import { canonical as canonicalOf } from "@svc/domain/handles/Handle"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { Code } from "@svc/domain/problems/Table"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Orgs } from "@svc/cluster/account/Orgs"
import { check, pass } from "@svc/cluster/health/Health"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/identity/Identities"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { renewEvery, TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { type Standing, TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import { Clock, Context, type Duration, Effect, FiberSet, Layer, Redacted, Schedule, Schema } from "effect"
import { goaway, kind, reset } from "../protocol/Manifest.ts"
import * as Admission from "./Admission.ts"
import { answer, problem, refusal } from "./Answers.ts"
import * as Attach from "./Attach.ts"
import * as Connections from "./Connections.ts"
import { type Certificate, make as makeListener } from "./Listener.ts"
import * as Metering from "./Metering.ts"
import * as Peers from "./Peers.ts"
import { clientOf, type Front, serve } from "./PublicHttp.ts"
import type { Route } from "./Route.ts"
import * as Registry from "./Registry.ts"
import type { Head } from "../protocol/RequestHead.ts"
import * as Routes from "./Routes.ts"
import * as TcpPorts from "./TcpPorts.ts"

export interface EdgeSettings {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  /** Where other edges reach this one (`host:port`); what it listens on where undefined. */
  readonly address: string | undefined
  /** PEM texts, or the files they are in, which are read again when they change. */
  readonly tls: Certificate | undefined
  /** What is under way when the edge goes down may take this long to end. */
  readonly drainMillis: number
}

/** The port could not be listened on, or its certificate not read. */
export class EdgeListenFailed extends Schema.TaggedError<EdgeListenFailed>()("EdgeListenFailed", {
  message: Schema.String,
}) {}

const judgeEvery = "1 second"
const flushEvery = "5 seconds"
const certificateEvery = "5 seconds"
const idleDrainMillis = 2_000

const decodeCard = Schema.decodeUnknownOption(StoredCard)

const failures: Readonly<Record<number, Code>> = {
  [reset.local_refused]: "tunnel_local_refused",
  [reset.local_timeout]: "tunnel_local_timeout",
  [reset.quota]: "tunnel_transfer_blocked",
  [reset.not_here]: "tunnel_agent_offline",
}

const pem = (text: string) => (text.includes("-----BEGIN") ? Promise.resolve(text) : readFile(text, "utf8"))

const readCertificate = ({ cert, key }: Certificate): Effect.Effect<Certificate, EdgeListenFailed> =>
  Effect.tryPromise({
    try: async () => ({ cert: await pem(cert), key: await pem(key) }),
    catch: (error) => new EdgeListenFailed({ message: `The edge's certificate cannot be read: ${String(error)}` }),
  })

const make = Effect.fnUntraced(function* (settings: EdgeSettings) {
  const book = yield* Addresses
  const credentials = yield* CredentialLookup
  const links = yield* TunnelLinks
  const tunnels = yield* TunnelQueries
  const usage = yield* TunnelUsage
  const actors = yield* Identities
  const orgs = yield* Orgs
  const sealing = yield* Sealing
  const edgeId = yield* makeUuidV7
  const registry = Registry.make()
  const run = yield* FiberSet.makeRuntimePromise()
  /** What nobody waits for; that it was cut off by the end of the edge is no error. */
  const launch = (effect: Effect.Effect<void>) => void run(effect).catch(() => {})
  let address = settings.address ?? ""
  let draining = false

  let certificate = settings.tls === undefined ? undefined : yield* readCertificate(settings.tls)
  const inDevelopment = book.environment === "development"
  const suffix = `.${book.tunnelDomain.toLowerCase()}`
  const connectHost = `connect${suffix}`
  const peers = Peers.make({ edgeId, connectHost, ca: () => certificate?.cert, sealing, registry })
  const routes = yield* Routes.make({
    edgeId,
    registry,
    peers,
    // A newer process of the agent may have attached elsewhere.
    onChange: (name) => {
      if (registry.of(name).length > 0) launch(renew)
    },
  })
  const metering = Metering.make({
    lease: (org, used) => ask(orgs.of(org).LeaseTransfer({ edge: edgeId, used })),
    record: usage.add,
    run: launch,
  })
  const connections = Connections.make()
  const nameOf = (host: string) => (host.endsWith(suffix) ? canonicalOf(host.slice(0, -suffix.length)) : undefined)

  const requestId = () => Effect.runSync(Effect.map(makeUuidV7, (id) => toPublic("req_", id)))
  const says = (head: Head, code: Code, detail: string, retryAfterSeconds?: number) =>
    problem(book, code, detail, {
      accept: head.headers.get("accept"),
      requestId: requestId(),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    })

  // --- Requests

  const offline = Effect.fnUntraced(function* (head: Head, name: string, { handle }: Standing) {
    if (head.method === "GET" && head.target.split("?")[0] === "/.well-known/agent-card.json") {
      const card = decodeCard(yield* tunnels.cardOf(name))
      if (card._tag === "Some") {
        const document = a2aDocument(fieldsOf(book, handle, card.value))
        return answer(200, "application/json", JSON.stringify(document), { "access-control-allow-origin": "*" })
      }
    }
    return says(head, "tunnel_agent_offline", "The agent holds no tunnel at the moment.")
  })

  /** Why the Tunnel's settings, or its Org's budget, do not let this request pass. */
  const refusalOf = (standing: Standing, client: string, head: Head): Buffer | undefined => {
    if (!Admission.allowsClient(standing, client)) return refusal(403, "This tunnel is not open to your address.")
    if (!Admission.allowsCredentials(standing, head.headers.get("authorization"))) {
      return refusal(401, "This tunnel asks for a user name and a password.", {
        "www-authenticate": `Basic realm="${standing.handle}", charset="UTF-8"`,
      })
    }
    const blocked = metering.blockedFor(standing.orgId)
    return blocked === 0
      ? undefined
      : says(head, "tunnel_transfer_blocked", "The day's transfer is used up.", Math.ceil(blocked / 1000))
  }

  const passage = (standing: Standing) => (cut: () => void) => metering.open(standing.orgId, standing.identityId, cut)

  const routeOf = (head: Head, client: string) =>
    Effect.gen(function* () {
      const name = nameOf(head.host)
      if (name === undefined) return says(head, "tunnel_not_found", "No tunnel has this host.")
      const standing = yield* routes.standing(name)
      if (standing === undefined) return says(head, "tunnel_not_found", "No agent has this name.")
      const refused = refusalOf(standing, client, head)
      if (refused !== undefined) return refused
      const way = yield* routes.find(name, standing)
      if (way === undefined) return yield* offline(head, name, standing)
      const { host_header } = standing.settings
      const route: Route = {
        _tag: "Stream",
        open: way.open,
        host:
          host_header === "preserve" ? undefined : host_header === "local" ? (way.localHost ?? undefined) : host_header,
        ownAuthorization: standing.passwordHash !== undefined,
        refuses: (later) => refusalOf(standing, client, later),
        passage: passage(standing),
      }
      return route
    }).pipe(
      Effect.catch(() => Effect.succeed(says(head, "unavailable", "The name could not be looked up."))),
      Effect.map((found): Route => (Buffer.isBuffer(found) ? { _tag: "Answer", bytes: found } : found)),
    )

  const front: Front = {
    route: (head, client) => run(routeOf(head, client)),
    reroute: (head, client) => run(Effect.andThen(routes.forget(nameOf(head.host) ?? ""), routeOf(head, client))),
    failed: (head, code) =>
      says(head, failures[code] ?? "tunnel_link_lost", "The request did not come to an answer of the agent."),
    isLink: (head) => (head.host === connectHost || inDevelopment) && (Peers.isPeer(head) || Attach.isAgent(head)),
    upgraded: (socket) => connections.upgraded(socket),
    link: (head, socket, rest) => {
      connections.forget(socket)
      socket.on("error", () => socket.destroy())
      if (Peers.isPeer(head)) peers.accept(head, socket, rest)
      else void run(attach.accept(head, socket, rest)).catch(() => socket.destroy())
    },
  }

  // --- Raw connections: the TCP port, and TLS that is not opened here

  const rawRoute = (name: string, client: string) =>
    Effect.gen(function* () {
      const standing = yield* routes.standing(name)
      if (standing === undefined || !Admission.allowsClient(standing, client)) return undefined
      if (metering.blockedFor(standing.orgId) > 0) return undefined
      const way = yield* routes.find(name, standing)
      if (way === undefined) return undefined
      const route: TcpPorts.TcpRoute = {
        open: way.open,
        proxyProtocol: standing.settings.proxy_protocol,
        passage: passage(standing),
      }
      return route
    })

  const passesThrough = (host: string) =>
    Effect.gen(function* () {
      const name = nameOf(host)
      if (name === undefined) return false
      return (yield* routes.standing(name))?.settings.tls === "passthrough"
    })

  const passThrough = (socket: Socket, host: string) =>
    Effect.map(rawRoute(nameOf(host) ?? "", clientOf(socket)), (route) => {
      const stream = route?.open(kind.passthrough, { peer: clientOf(socket), sni: host })
      if (route === undefined || stream === undefined) return socket.resetAndDestroy()
      TcpPorts.carry(socket, stream, route)
    })

  const ports = TcpPorts.make(
    settings.host,
    (name, client) => run(rawRoute(name, client)),
    (socket) => connections.add(socket, true),
  )

  // --- Links

  const changed = (name: string) => Effect.ignore(ask(actors.of(name).TunnelChanged()))

  const attach = Attach.make({
    book,
    edgeId,
    credentials,
    tunnels,
    links,
    registry,
    address: () => address,
    isDraining: () => draining,
    refusal: says,
    onAttached: ({ canonical }, port) => {
      ports.open(canonical, port)
      launch(changed(canonical))
    },
    onGone: ({ id, canonical }) => {
      if (registry.of(canonical).length === 0) ports.close(canonical)
      launch(Effect.andThen(Effect.ignore(links.detach([id])), changed(canonical)))
    },
  })

  /** Links whose credential or Identity is gone leave within a second. */
  const judge = Effect.suspend(() =>
    Effect.forEach(
      registry.all(),
      (attached) =>
        Effect.catchTags(credentials.resolve(Redacted.make(attached.token)), {
          unauthenticated: () => Effect.sync(() => attach.part(attached, "revoked")),
          account_deleting: () => Effect.sync(() => attach.part(attached, "revoked")),
        }),
      { concurrency: "unbounded", discard: true },
    ),
  ).pipe(Effect.ignore)

  /** A lease that is gone was taken over by a newer process of the agent, or its Identity or the table's rows went. */
  const renew = Effect.gen(function* () {
    const before = registry.all()
    const ours = yield* links.renew(before.map(({ id }) => id))
    for (const attached of before) {
      if (ours.has(attached.id) || attached.draining) continue
      const restored = yield* links.restore({ ...attached, edgeId, edgeAddress: address })
      if (restored) yield* changed(attached.canonical)
      else attach.part(attached, "replaced")
    }
  }).pipe(Effect.ignore)
  const sweep = Effect.gen(function* () {
    for (const name of yield* links.sweep) yield* changed(name)
  }).pipe(Effect.ignore)

  // --- The listener

  // In Development the port speaks both, TLS with a certificate of its own where it was given none.
  const shown =
    certificate ??
    (inDevelopment ? selfSigned([`*${suffix}`, connectHost], new Date(yield* Clock.currentTimeMillis)) : undefined)
  const listener = makeListener(shown, shown === undefined || inDevelopment, {
    http: (socket, proto, begun) => {
      connections.add(socket, false)
      serve(socket, proto, front, begun)
    },
    passesThrough: (name) => run(passesThrough(name)),
    passthrough: (socket, name) => {
      connections.add(socket, true)
      void run(passThrough(socket, name)).catch(() => socket.destroy())
    },
  })

  yield* Effect.acquireRelease(
    Effect.callback<void, EdgeListenFailed>((resume) => {
      listener.server.once("error", (error) =>
        resume(
          Effect.fail(
            new EdgeListenFailed({
              message: `The edge cannot listen on ${settings.host}:${settings.port}: ${error.message}`,
            }),
          ),
        ),
      )
      listener.server.listen(settings.port, settings.host, () => resume(Effect.void))
    }),
    () =>
      Effect.gen(function* () {
        draining = true
        listener.server.close()
        for (const attached of registry.all()) {
          attached.draining = true
          attached.link.goaway(goaway.drain)
        }
        peers.leave()
        // Agents dial elsewhere and leave; what is under way may end.
        const begun = performance.now()
        const elapsed = () => performance.now() - begun
        const busy = () =>
          connections.size() > 0 || peers.isBusy() || registry.all().some(({ link }) => link.mux.streams.size > 0)
        yield* Effect.sleep(100)
        // An agent that has another edge is gone in a moment; one that has none keeps its idle link to no end.
        while (
          elapsed() < settings.drainMillis &&
          (busy() || (registry.all().length > 0 && elapsed() < idleDrainMillis))
        ) {
          connections.drain(elapsed())
          yield* Effect.sleep(50)
        }
        const ids = registry.all().map(({ id, link }) => (link.close("drained"), id))
        peers.close()
        yield* Effect.ignore(links.detach(ids))
        // The actors of this process may be gone by now; what is not told of a lease is forgiven.
        yield* Effect.timeoutOption(metering.flush, "1 second")
        ports.closeAll()
        connections.close()
      }),
  )
  const bound = listener.server.address()
  const port = typeof bound === "object" && bound !== null ? bound.port : settings.port
  if (address === "") address = `${settings.host}:${port}`

  // --- What goes on by the clock

  const freshCertificate = Effect.suspend(() =>
    settings.tls === undefined
      ? Effect.void
      : Effect.map(readCertificate(settings.tls), (found) => {
          if (found.cert === certificate?.cert && found.key === certificate.key) return
          listener.renew(found)
          certificate = found
        }),
  ).pipe(Effect.catchCause((cause) => Effect.logWarning("The edge's certificate was not renewed", cause)))

  const often = (work: Effect.Effect<void>, every: Duration.Input) =>
    Effect.forkScoped(Effect.repeat(work, Schedule.spaced(every)))
  yield* often(judge, judgeEvery)
  yield* often(Effect.andThen(renew, sweep), renewEvery)
  yield* often(metering.flush, flushEvery)
  yield* often(freshCertificate, certificateEvery)
  return { port, links: () => registry.all().length }
})

export class Edge extends Context.Service<Edge, { readonly port: number; readonly links: () => number }>()(
  "@svc/tunnel-edge/edge/Edge",
) {}

export const layer = (settings: EdgeSettings) =>
  Layer.effect(Edge, make(settings)).pipe((edge) =>
    Layer.merge(
      edge,
      check(
        "edge",
        true,
        Effect.map(Edge, ({ port, links }) => ({ ...pass, detail: `listening on port ${port}, ${links()} links` })),
      ).pipe(Layer.provide(edge)),
    ),
  )
