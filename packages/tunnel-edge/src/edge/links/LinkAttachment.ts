/**
 * Attaches the link of an agent: authenticates and authorizes the request, takes the lease, and turns the socket (or
 * the WebSocket, behind proxies) into the link.
 */
import { randomUUID } from "node:crypto"
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import type { Socket } from "node:net"
import { Addresses, tunnelHostname, tunnelUrl } from "@svc/domain/Addresses"
import { mayActOn, soleOf } from "@svc/domain/account/Authorization"
import { judgeNetwork, judgeScope } from "@svc/domain/account/PolicyEvaluation"
import { canonical as canonicalOf } from "@svc/domain/handles/Handle"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Code } from "@svc/domain/problems/Table"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { type Successor, TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Clock, Effect, Redacted } from "effect"
import { createWebSocketStream, WebSocketServer } from "ws"
import { makeLink } from "../../protocol/Link.ts"
import {
  goaway,
  limits,
  path,
  reset,
  timing,
  upgradeToken,
  version,
  webSocketProtocol,
} from "../../protocol/Manifest.ts"
import * as LinkAudit from "./LinkAudit.ts"
import { problemFor } from "../http/EdgeResponses.ts"
import { clientOf } from "../listening/Connections.ts"
import { switching } from "./Peers.ts"
import type { Attached, Registry } from "./Registry.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { EdgeIdentity } from "../EdgeIdentity.ts"
import { Timing } from "../Timing.ts"

/** Matches the upgrade token of any version of the protocol. */
const someVersion = /^idt\/\d+$/

const isWebSocket = (head: Head) =>
  head.headers.get("upgrade")?.toLowerCase() === "websocket" &&
  (head.headers.get("sec-websocket-protocol") ?? "").split(",").some((one) => one.trim() === webSocketProtocol)

export const isAgent = (head: Head): boolean =>
  head.upgrade &&
  head.target === path &&
  (someVersion.test(head.headers.get("upgrade")?.toLowerCase() ?? "") || isWebSocket(head))

export const make = Effect.fnUntraced(function* (options: {
  readonly self: EdgeIdentity
  readonly registry: Registry
  readonly onAttached: (attached: Attached, port: number | null) => void
  /** Called with the reason when a link has closed. */
  readonly onClosed: (attached: Attached, why: string) => void
}) {
  const { self, registry } = options
  const book = yield* Addresses
  const credentials = yield* CredentialLookup
  const tunnels = yield* TunnelQueries
  const links = yield* TunnelLinks
  const recording = yield* LinkAudit.make
  const sockets = new WebSocketServer({ noServer: true, maxPayload: limits.queuedBytes, perMessageDeflate: false })

  /**
   * Completes the upgrade and returns the duplex of the link with the bytes that followed; undefined if the socket
   * closed.
   */
  const carrier = (head: Head, socket: Socket, rest: Buffer) =>
    Effect.callback<{ readonly duplex: Duplex; readonly ahead: Buffer } | undefined>((resume) => {
      if (socket.destroyed) return resume(Effect.succeed(undefined))
      socket.once("close", () => resume(Effect.succeed(undefined)))
      if (!isWebSocket(head)) {
        socket.write(switching)
        return resume(Effect.succeed({ duplex: socket, ahead: rest }))
      }
      // `ws` uses only these members of Node's request.
      const request = { method: head.method, url: head.target, headers: Object.fromEntries(head.headers) }
      sockets.handleUpgrade(request as unknown as IncomingMessage, socket, rest, (webSocket) =>
        resume(Effect.succeed({ duplex: createWebSocketStream(webSocket), ahead: Buffer.alloc(0) })),
      )
    })

  /**
   * Closes a link because another process of the agent took over or because the credential or Identity is gone. The
   * agent only stops for good if the successor is named.
   */
  const dismiss = (attached: Attached, why: "replaced" | "revoked", successor?: Successor) => {
    if (attached.draining) return
    attached.draining = true
    attached.link.goaway(goaway[why], successor === undefined ? undefined : { successor })
    setTimeout(() => attached.link.close(why), Timing.partingMillis[why]).unref()
  }

  const accept = Effect.fnUntraced(function* (head: Head, socket: Socket, rest: Buffer) {
    const refuse = (code: Code, detail: string) =>
      Effect.sync(() => {
        socket.end(problemFor(book, head, code, detail))
        // A refused client may keep the connection open.
        setTimeout(() => socket.destroy(), Timing.refusedMillis).unref()
      })
    const upgrade = head.headers.get("upgrade")?.toLowerCase()
    if (upgrade !== upgradeToken && !isWebSocket(head))
      return yield* refuse("tunnel_client_outdated", `This edge speaks ${upgradeToken}.`)
    const token = /^Bearer\s+(\S+)$/i.exec(head.headers.get("authorization") ?? "")?.[1]
    if (token === undefined) return yield* refuse("unauthenticated", "The link carries no credential.")
    const client = (head.headers.get("svc-tunnel-client") ?? "unknown").slice(0, 100)
    const from = { address: clientOf(socket), client }
    const resolved = yield* Effect.result(credentials.resolve(Redacted.make(token)))
    if (resolved._tag === "Failure") {
      yield* recording.credentialRejected(Redacted.make(token), from, resolved.failure.code)
      return yield* refuse(resolved.failure.code, resolved.failure.detail)
    }
    const caller = resolved.success
    const name = canonicalOf(head.headers.get("svc-tunnel-handle") ?? soleOf(caller)?.handle ?? "")
    /** Refuses an authenticated caller and records the refusal. */
    const refuseCaller = (code: Code, detail: string) =>
      Effect.andThen(recording.refused(caller, from, name, code), refuse(code, detail))
    if (!mayActOn(caller, name)) {
      return yield* refuseCaller("foreign_identity", "An Identity Key can only connect the Tunnel of its own Identity.")
    }
    const narrow = judgeNetwork(caller, from) ?? judgeScope("tunnel:write", caller, book)
    if (narrow !== undefined) return yield* refuseCaller(narrow.code, narrow.detail)
    const looked = yield* Effect.result(tunnels.standing(name))
    if (looked._tag === "Failure") return yield* refuse("unavailable", "The lookup of the name failed.")
    const standing = looked.success
    if (standing === undefined || standing.orgId !== caller.org.id) {
      return yield* refuseCaller("not_found", "The Identity does not exist.")
    }
    if (standing.status !== "ready")
      return yield* refuseCaller("identity_not_ready", `The Identity is ${standing.status}.`)
    if (self.isDraining) return yield* refuse("unavailable", "This edge is going down.")
    const { identityId, handle, port } = standing
    const instance = head.headers.get("svc-tunnel-instance") ?? randomUUID()
    // A connection that the agent dials again replaces its predecessor, whose loss may not have been noticed yet.
    const conn = head.headers.get("svc-tunnel-conn") ?? "0"
    if (registry.of(name).some((other) => other.instance === instance && other.conn !== conn && !other.draining)) {
      return yield* refuse("tunnel_duplicate_edge", "This edge has a link of this agent.")
    }
    const id = yield* makeUuidV7
    const localHost = head.headers.get("svc-tunnel-local")?.slice(0, 255) ?? null
    const leased = yield* Effect.result(
      links.attach({
        id,
        identityId,
        canonical: name,
        edgeId: self.id,
        edgeAddress: self.address,
        instance,
        client,
        localHost,
      }),
    )
    if (leased._tag === "Failure") return yield* refuse("unavailable", "The link could not be written down.")
    for (const other of registry.of(name)) {
      if (other.instance !== instance) dismiss(other, "replaced", { instance, client })
      else if (other.conn === conn) other.link.close("dialled again")
    }
    yield* recording.linked(caller, from, { id: identityId, handle })
    // The link is registered in the same turn in which it is created, because it could otherwise close in between.
    const since = new Date(yield* Clock.currentTimeMillis)
    const made = yield* carrier(head, socket, rest)
    if (made === undefined || socket.destroyed) return yield* Effect.ignore(links.detach([id]))
    const { duplex, ahead } = made
    const link = makeLink(duplex, ahead, true, {
      open: (stream) => stream.reset(reset.policy),
      hello: () => {},
      status: (status) => {
        attached.localUp = status["local"] !== "down"
      },
      goaway: () => registry.leave(attached),
      close: (why) => {
        registry.remove(attached)
        options.onClosed(attached, why)
      },
    })
    const attached: Attached = {
      id,
      link,
      identityId,
      canonical: name,
      handle,
      instance,
      conn,
      since,
      client,
      token,
      draining: false,
      leaving: false,
      localHost,
      localUp: true,
    }
    registry.add(attached)
    link.hello({
      version,
      edge_id: self.id,
      conn_id: id,
      window: limits.windowBytes,
      max_streams: limits.streams,
      ping_ms: timing.pingMillis,
      public: { hostname: tunnelHostname(book, handle), url: tunnelUrl(book, handle), tcp_port: port },
    })
    duplex.resume()
    options.onAttached(attached, port)
  })

  return { accept, dismiss }
})
