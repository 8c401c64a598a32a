/**
 * The public edge: agents attach their links here, the public reaches them through here. A name is found by its Host; a
 * request goes to a local link, else to the edge that holds one, in one hop. Effect where a link or a stream opens or
 * closes, plain callbacks in between.
 */
import { randomUUID } from "node:crypto"
import { createServer, type Socket } from "node:net"
import { createServer as createSecureServer, type TLSSocket } from "node:tls"
import { Addresses, tunnelHostname, tunnelUrl } from "@svc/domain/Addresses"
import { a2aDocument, fieldsOf, StoredCard } from "@svc/domain/card/Card"
import { canonical as canonicalOf } from "@svc/domain/handles/Handle"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { Code } from "@svc/domain/problems/Table"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { check, pass } from "@svc/cluster/health/Health"
import { ask, Identities } from "@svc/cluster/identity/Ask"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { renewEvery, TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { Clock, Context, Effect, FiberSet, Layer, Redacted, Schedule, Schema } from "effect"
import { makeLink } from "../protocol/Link.ts"
import { flag, goaway, path, reset, timing, upgradeToken, version } from "../protocol/Manifest.ts"
import { answer, problem } from "./Answers.ts"
import * as Peers from "./Peers.ts"
import { peerPath, switching } from "./Peers.ts"
import { type Front, type Route, serve } from "./PublicHttp.ts"
import * as Registry from "./Registry.ts"
import type { Head } from "./RequestHead.ts"
import * as TcpPorts from "./TcpPorts.ts"

export interface EdgeSettings {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  /** Where other edges reach this one (`host:port`); what it listens on where undefined. */
  readonly address: string | undefined
  readonly tls: { readonly cert: string; readonly key: string } | undefined
}

/** The port could not be listened on. */
export class EdgeListenFailed extends Schema.TaggedError<EdgeListenFailed>()("EdgeListenFailed", {
  message: Schema.String,
}) {}

/** A name whose last link was just lost is waited for: the agent is on its way back. */
const hold = { lostWithinMillis: 10_000, waitMillis: 3_000, stepMillis: 50, atMost: 1_000 }
const unknownNameMillis = 5_000
const judgeEvery = "1 second"
const drainMillis = 8_000
const idleDrainMillis = 2_000

const decodeCard = Schema.decodeUnknownOption(StoredCard)

const failures: Readonly<Record<number, Code>> = {
  [reset.local_refused]: "tunnel_local_refused",
  [reset.local_timeout]: "tunnel_local_timeout",
  [reset.quota]: "tunnel_transfer_blocked",
  [reset.not_here]: "tunnel_agent_offline",
}

const make = Effect.fnUntraced(function* (settings: EdgeSettings) {
  const book = yield* Addresses
  const credentials = yield* CredentialLookup
  const links = yield* TunnelLinks
  const actors = yield* Identities
  const sealing = yield* Sealing
  const edgeId = yield* makeUuidV7
  const registry = Registry.make()
  const run = yield* FiberSet.makeRuntimePromise()
  const unknown = new Map<string, number>()
  /** Requests that wait for an agent to come back. */
  const held = new Set<Head>()
  let address = settings.address ?? ""
  let draining = false

  const suffix = `.${book.tunnelDomain.toLowerCase()}`
  const connectHost = `connect${suffix}`
  const ports = TcpPorts.make(settings.host, registry)
  const peers = Peers.make({ edgeId, connectHost, ca: settings.tls?.cert, sealing, registry })
  const nameOf = (host: string) => (host.endsWith(suffix) ? canonicalOf(host.slice(0, -suffix.length)) : undefined)

  const requestId = () => Effect.runSync(Effect.map(makeUuidV7, (id) => toPublic("req_", id)))
  const says = (head: Head, code: Code, detail: string) =>
    problem(book, code, detail, { accept: head.headers.get("accept"), requestId: requestId() })

  // --- Routes

  /** A stream of the edge that holds a link of the name; whether there should have been one. */
  const hop = Effect.fnUntraced(function* (name: string) {
    const holders = yield* links.elsewhere(name, edgeId)
    for (const { edge_address } of holders) {
      const peer = yield* Effect.promise(() => peers.to(edge_address))
      if (peer !== undefined) {
        const open = (streamKind: number, meta: object) =>
          peer.mux.open(streamKind, flag.hopped, Buffer.from(JSON.stringify({ ...meta, name })))
        return { open, expected: true }
      }
    }
    return { open: undefined, expected: holders.length > 0 }
  })

  const offline = Effect.fnUntraced(function* (head: Head, name: string) {
    if (head.method === "GET" && head.target.split("?")[0] === "/.well-known/agent-card.json") {
      const standing = yield* links.standing(name)
      const card = decodeCard(yield* links.cardOf(name))
      if (standing !== undefined && card._tag === "Some") {
        const document = a2aDocument(fieldsOf(book, standing.handle, card.value))
        return answer(200, "application/json", JSON.stringify(document), { "access-control-allow-origin": "*" })
      }
    }
    return says(head, "tunnel_agent_offline", "The agent holds no tunnel at the moment.")
  })

  const routeTo = Effect.fnUntraced(function* (head: Head): Effect.fn.Return<Route, never> {
    const name = nameOf(head.host)
    if (name === undefined) return { _tag: "Answer", bytes: says(head, "tunnel_not_found", "No tunnel has this host.") }
    const local = registry.pick(name)
    if (local !== undefined) return streamOf(local)
    const now = yield* Clock.currentTimeMillis
    if ((unknown.get(name) ?? 0) > now) {
      return { _tag: "Answer", bytes: says(head, "tunnel_not_found", "No agent has this name.") }
    }
    const found = yield* Effect.gen(function* () {
      const standing = yield* links.standing(name)
      if (standing === undefined || standing.status === "deleting") {
        if (unknown.size > 50_000) unknown.clear()
        unknown.set(name, now + unknownNameMillis)
        return says(head, "tunnel_not_found", "No agent has this name.")
      }
      const lostAt = registry.lostAt(name)
      let wait = lostAt !== undefined && now - lostAt < hold.lostWithinMillis
      while (true) {
        const back = registry.pick(name)
        if (back !== undefined) return streamOf(back)
        const { open, expected } = yield* hop(name)
        if (open !== undefined) return { _tag: "Stream", open } as Route
        // Its edge died a moment ago: the lease stands, nobody answers, and the agent is dialling.
        wait ||= expected
        const late = (yield* Clock.currentTimeMillis) >= now + hold.waitMillis
        if (!wait || late || held.size >= hold.atMost) return yield* offline(head, name)
        held.add(head)
        yield* Effect.ensuring(
          Effect.sleep(hold.stepMillis),
          Effect.sync(() => held.delete(head)),
        )
      }
    }).pipe(Effect.catch(() => Effect.succeed(says(head, "unavailable", "The name could not be looked up."))))
    return Buffer.isBuffer(found) ? { _tag: "Answer", bytes: found } : found
  })

  const streamOf = (attached: Registry.Attached): Route => ({
    _tag: "Stream",
    open: (streamKind, meta) => attached.link.mux.open(streamKind, 0, Buffer.from(JSON.stringify(meta))),
  })

  // --- Links

  const changed = (name: string) => Effect.ignore(ask(actors.of(name).TunnelChanged()))

  const leave = (attached: Registry.Attached) =>
    Effect.gen(function* () {
      yield* Effect.ignore(links.detach([attached.id]))
      yield* changed(attached.canonical)
    })

  const refuseUpgrade = (socket: Socket, head: Head, code: Code, detail: string) => socket.end(says(head, code, detail))

  const accept = Effect.fnUntraced(function* (head: Head, socket: Socket, rest: Buffer) {
    const refuse = (code: Code, detail: string) => Effect.sync(() => void refuseUpgrade(socket, head, code, detail))
    const token = /^Bearer\s+(\S+)$/i.exec(head.headers.get("authorization") ?? "")?.[1]
    if (token === undefined) return yield* refuse("unauthenticated", "The link carries no credential.")
    const caller = yield* Effect.option(credentials.resolve(Redacted.make(token)))
    if (caller._tag === "None") return yield* refuse("unauthenticated", "The credential is unknown or revoked.")
    const asked = head.headers.get("svc-tunnel-handle") ?? caller.value.identity?.handle ?? ""
    const name = canonicalOf(asked)
    if (caller.value.identity !== null && caller.value.identity.canonical !== name) {
      return yield* refuse("foreign_identity", "An Identity Key may hold the tunnel of its own Identity only.")
    }
    const standing = yield* Effect.option(links.standing(name))
    if (standing._tag === "None") return yield* refuse("unavailable", "The name could not be looked up.")
    if (standing.value === undefined || standing.value.orgId !== caller.value.org.id) {
      return yield* refuse("not_found", "There is no such Identity.")
    }
    if (standing.value.status !== "ready")
      return yield* refuse("identity_not_ready", `The Identity is ${standing.value.status}.`)
    if (draining) return yield* refuse("unavailable", "This edge is going down.")
    const { identityId, handle, port } = standing.value
    const instance = head.headers.get("svc-tunnel-instance") ?? randomUUID()
    // A newer process of the agent takes over from the one before it, here and elsewhere.
    for (const other of registry.of(name)) {
      if (other.instance === instance)
        return yield* refuse("tunnel_duplicate_edge", "This edge has a link of this agent.")
    }
    const id = yield* makeUuidV7
    const client = (head.headers.get("svc-tunnel-client") ?? "unknown").slice(0, 100)
    yield* links.replace(name, instance)
    yield* links.attach({ id, identityId, canonical: name, edgeId, edgeAddress: address, instance, client })
    for (const other of registry.of(name)) {
      other.draining = true
      other.link.goaway(goaway.replaced)
      setTimeout(() => other.link.close("replaced"), 1_000).unref()
    }
    socket.write(switching)
    const link = makeLink(socket, rest, true, {
      open: (stream) => stream.reset(reset.policy),
      hello: () => {},
      goaway: () => {
        attached.draining = true
      },
      close: () => {
        registry.remove(attached)
        if (registry.of(name).length === 0) ports.close(name)
        void run(leave(attached)).catch(() => {})
      },
    })
    const attached: Registry.Attached = {
      id,
      link,
      identityId,
      canonical: name,
      handle,
      instance,
      since: new Date(yield* Clock.currentTimeMillis),
      client,
      token,
      draining: false,
    }
    registry.add(attached)
    ports.open(name, port)
    link.hello({
      version,
      edge_id: edgeId,
      conn_id: id,
      ping_ms: timing.pingMillis,
      public: { hostname: tunnelHostname(book, handle), url: tunnelUrl(book, handle), tcp_port: port },
    })
    socket.resume()
    yield* changed(name)
  })

  // --- The listener

  const front: Front = {
    route: (head) => run(routeTo(head)),
    failed: (head, code) =>
      says(head, failures[code] ?? "tunnel_link_lost", "The request did not come to an answer of the agent."),
    isLink: (head) =>
      head.upgrade &&
      head.headers.get("upgrade")?.toLowerCase() === upgradeToken &&
      (head.target === path || head.target === peerPath) &&
      (head.host === connectHost || book.environment === "development"),
    link: (head, socket, rest) => {
      socket.on("error", () => socket.destroy())
      if (head.target === peerPath) peers.accept(head, socket, rest)
      else void run(accept(head, socket, rest)).catch(() => socket.destroy())
    },
  }

  const sockets = new Set<Socket>()
  const onConnection = (proto: "http" | "https") => (socket: Socket | TLSSocket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    serve(socket, proto, front)
  }
  const server =
    settings.tls === undefined
      ? createServer({ allowHalfOpen: true }, onConnection("http"))
      : createSecureServer({ ...settings.tls, ALPNProtocols: ["http/1.1"], allowHalfOpen: true }, onConnection("https"))
  if (settings.tls !== undefined) server.on("tlsClientError", () => {})

  yield* Effect.acquireRelease(
    Effect.callback<void, EdgeListenFailed>((resume) => {
      server.once("error", (error) =>
        resume(
          Effect.fail(
            new EdgeListenFailed({
              message: `The edge cannot listen on ${settings.host}:${settings.port}: ${error.message}`,
            }),
          ),
        ),
      )
      server.listen(settings.port, settings.host, () => resume(Effect.void))
    }),
    () =>
      Effect.gen(function* () {
        draining = true
        server.close()
        for (const attached of registry.all()) {
          attached.draining = true
          attached.link.goaway(goaway.drain)
        }
        peers.leave()
        // Agents dial elsewhere and leave; what is under way may end.
        const deadline = Date.now() + drainMillis
        const busy = () => peers.isBusy() || registry.all().some(({ link }) => link.mux.streams.size > 0)
        // An agent that has another edge is gone in a moment; one that has none keeps its idle link to no end.
        const patience = Date.now() + idleDrainMillis
        yield* Effect.sleep(100)
        while (Date.now() < deadline && (busy() || (registry.all().length > 0 && Date.now() < patience))) {
          yield* Effect.sleep(50)
        }
        const ids = registry.all().map(({ id, link }) => (link.close("drained"), id))
        peers.close()
        yield* Effect.ignore(links.detach(ids))
        ports.closeAll()
        for (const socket of sockets) socket.destroySoon()
      }),
  )
  const bound = server.address()
  const port = typeof bound === "object" && bound !== null ? bound.port : settings.port
  if (address === "") address = `${settings.host}:${port}`

  // --- What goes on by the clock

  /** Links whose credential or Identity is gone leave within a second. */
  const judge = Effect.suspend(() =>
    Effect.forEach(
      registry.all(),
      (attached) =>
        Effect.catchTags(credentials.resolve(Redacted.make(attached.token)), {
          unauthenticated: () => end(attached),
          account_deleting: () => end(attached),
        }),
      { concurrency: "unbounded", discard: true },
    ),
  ).pipe(Effect.ignore)
  const end = (attached: Registry.Attached) =>
    Effect.sync(() => {
      attached.draining = true
      attached.link.goaway(goaway.revoked)
      setTimeout(() => attached.link.close("revoked"), 100).unref()
    })

  const renew = Effect.gen(function* () {
    const before = registry.all()
    const ours = yield* links.renew(edgeId)
    // A lease that is gone was taken over by a newer process of the agent, or its Identity went.
    for (const attached of before) {
      if (ours.has(attached.id) || attached.draining) continue
      attached.draining = true
      attached.link.goaway(goaway.replaced)
      setTimeout(() => attached.link.close("replaced"), 1_000).unref()
    }
    for (const name of yield* links.sweep) yield* changed(name)
  }).pipe(Effect.ignore)

  yield* Effect.forkScoped(Effect.repeat(judge, Schedule.spaced(judgeEvery)))
  yield* Effect.forkScoped(Effect.repeat(renew, Schedule.spaced(renewEvery)))
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
