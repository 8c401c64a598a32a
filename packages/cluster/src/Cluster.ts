/**
 * Joins the process to the cluster, as a runner that hosts actors or as a gateway that only calls them. Runners discover
 * each other through PostgreSQL, where advisory locks hold the ownership of shards. Messages are volatile: only the
 * transactions of actors are durable, so there is no message storage.
 */
import { type ConnectionOptions, createSecureContext, type TlsOptions } from "node:tls"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Context, Effect, Layer, Option } from "effect"
import {
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  ShardId,
  Sharding,
  ShardingConfig,
  SocketRunner,
} from "effect/cluster"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket, SocketServer } from "effect/socket"
import { apart } from "./actor/MessageContext.ts"
import { ChangeFeed } from "./feed/ChangeFeed.ts"
import { check, Health, pass } from "./health/Health.ts"
import * as Membership from "./Membership.ts"
import * as Certificates from "./net/Certificates.ts"
import * as TlsListener from "./net/TlsListener.ts"
import * as Metrics from "./observe/Metrics.ts"
import { Sealing } from "./sealing/Sealing.ts"
import { ClusterSql } from "./store/Database.ts"
import { Timing } from "./Timing.ts"

/** Certificates of a private authority for mutual TLS between runners, as PEM texts or files. */
interface RunnerTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/**
 * TLS options of both ends of a connection between runners. If no certificates are configured, they use a pre-shared key
 * derived from the master key (RFC 4279), so that no other program on the machine can connect to a runner.
 */
interface Proofs {
  /** Called for each connection. */
  readonly client: () => ConnectionOptions
  readonly server: TlsOptions
}

const listenerName = "runner"

// Runners are authenticated by the authority or by the key, not by a host name.
const unnamed = { checkServerIdentity: () => undefined }

/** Follows renewed certificate files: each new connection uses the current ones. */
const byCertificates = Effect.fnUntraced(function* (tls: RunnerTls) {
  let current = yield* Certificates.read(tls, listenerName)
  let context = createSecureContext(current)
  yield* Certificates.follow(tls, listenerName, current, (renewed) => {
    current = renewed
    context = createSecureContext(renewed)
  })
  const proofs: Proofs = {
    client: () => ({ ...current, ...unnamed, servername: listenerName }),
    server: {
      ...current,
      requestCert: true,
      rejectUnauthorized: true,
      SNICallback: (_, done) => done(null, context),
    },
  }
  return proofs
})

const proofs = Effect.fnUntraced(function* (tls: RunnerTls | undefined) {
  if (tls !== undefined) return yield* byCertificates(tls)
  const sealing = yield* Sealing
  const keys = sealing.derived("runner")
  const [[identity, psk]] = [...keys] as [[string, Uint8Array]]
  // TLS 1.3 does not support these cipher suites.
  const common = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305:PSK-AES256-GCM-SHA384", maxVersion: "TLSv1.2" } as const
  const proofs: Proofs = {
    client: () => ({ ...common, ...unnamed, pskCallback: () => ({ identity, psk }) }),
    server: { ...common, pskCallback: (_, requestedIdentity) => keys.get(requestedIdentity) ?? null },
  }
  return proofs
})

interface RunnerSettings {
  /** The address for other runners. Anything but loopback requires `tls` with certificates of the operator. */
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  readonly tls?: RunnerTls | undefined
}

/** Every runner of a deployment must agree on this. */
export const shardsPerGroup = 64

const shardsInAll = Metrics.gauge("svc_cluster_shards", "Shards that the runners share, whoever owns them", [])
shardsInAll.set([], shardsPerGroup)

const common = {
  shardsPerGroup,
  shardLockExpiration: Timing.shardLockExpiration,
  shardLockRefreshInterval: Timing.shardLockRefresh,
  refreshAssignmentsInterval: Timing.refreshAssignments,
  runnerHealthCheckInterval: Timing.runnerHealthCheck,
  sendRetryInterval: Timing.sendRetry,
  entityTerminationTimeout: Timing.drain,
  // There are no stored messages to poll for, but the library also reacquires lost shards at this interval.
  entityMessagePollInterval: Timing.shardLook,
  maxResidentEntities: 50_000,
  simulateRemoteSerialization: false,
} as const

/**
 * A frame above the limit ends its connection with all requests in flight, so the limit is above the largest message (a post with
 * pictures, whose request may be 8 MiB). Mail above 256 KiB is not sent between runners.
 */
const frame = RpcSerialization.layerSchemaBinary({ maxFrameSize: 9 * 1024 * 1024 })

/** The client of the library over a mutually authenticated connection. */
const clientProtocol = (tls: RunnerTls | undefined) =>
  Layer.effect(
    Runners.RpcClientProtocol,
    Effect.gen(function* () {
      const serialization = yield* RpcSerialization.RpcSerialization
      const { client } = yield* proofs(tls)
      const connections = yield* Membership.RunnerConnections
      return {
        codecFor: serialization.codecFor,
        make: Effect.fnUntraced(function* (address: RunnerAddress.RunnerAddress) {
          // Node passes the signal to the socket, which its types do not declare for TLS.
          const closing = { signal: yield* connections.open(`${address.host}:${address.port}`) }
          const socket = yield* NodeSocket.makeTls({
            ...client(),
            ...closing,
            host: address.host,
            port: address.port,
            openTimeout: 1000,
            timeout: 5500,
          })
          return yield* RpcClient.makeProtocolSocket().pipe(
            Effect.provideService(Socket.Socket, socket),
            Effect.provideService(RpcSerialization.RpcSerialization, serialization),
          )
        }, Effect.orDie),
      }
    }),
  )

const listener = ({ host, port, tls }: RunnerSettings) =>
  Layer.effect(
    SocketServer.SocketServer,
    Effect.flatMap(proofs(tls), ({ server }) =>
      TlsListener.make({ ...server, host, port, handshakeTimeout: Timing.runnerHandshakeMillis }),
    ),
  )

/** Registers the runner after its port is bound, since a port of 0 is assigned by then. */
const runnerConfig = (host: string) =>
  Layer.effect(
    ShardingConfig.ShardingConfig,
    Effect.map(SocketServer.SocketServer, ({ address }) => {
      if (address._tag === "UnixPathAddress") throw new Error("a runner listens on a port")
      return {
        ...ShardingConfig.defaults,
        ...common,
        runnerAddress: Option.some(RunnerAddress.make(host, address.port)),
      }
    }),
  )

const shards = Array.from({ length: shardsPerGroup }, (_, at) => ShardId.make("default", at + 1))

/**
 * The health of the membership. A process that hosts actors is ready only after it has taken its first shards: until then, its
 * calls to actors can remain without an answer. Later, it can lose its shards for a moment while other processes host them.
 */
export const health = (hostsActors: boolean) => {
  let hasJoined = false
  return check(
    "cluster",
    true,
    Effect.gen(function* () {
      const sharding = yield* Sharding.Sharding
      if (yield* sharding.isShutdown) return { status: "fail" as const, detail: "is shutting down" }
      if (!hostsActors || shards.some((shard) => sharding.hasShardId(shard))) {
        hasJoined = true
        return pass
      }
      return hasJoined
        ? { status: "warn" as const, detail: "hosts no actors at the moment" }
        : { status: "fail" as const, detail: "has not joined the cluster yet" }
    }),
  )
}

/** Joins the cluster as a process that hosts actors. */
export const runner = (settings: RunnerSettings) => {
  const protocol = clientProtocol(settings.tls)
  const whole = health(true).pipe(
    Layer.provideMerge(SocketRunner.layer),
    Layer.provide(RunnerHealth.layerPing.pipe(Layer.provide(Runners.layerRpc), Layer.provide(protocol))),
    Layer.provide(protocol),
    Layer.provide([MessageStorage.layerNoop, Membership.storage]),
    Layer.provide(runnerConfig(settings.host)),
    Layer.provide(listener(settings)),
    Layer.provide(frame),
    Layer.provide([Membership.clock, Membership.RunnerConnections.layer]),
  )
  return apart(whole, Context.pick(Sealing, ClusterSql, ChangeFeed, Health))
}

/** Joins the cluster as a process that only calls actors. */
export const gateway = (tls: RunnerTls | undefined) =>
  health(false).pipe(
    Layer.provideMerge(SocketRunner.layerClientOnly),
    Layer.provide(clientProtocol(tls)),
    Layer.provide([MessageStorage.layerNoop, Membership.storage]),
    Layer.provide(ShardingConfig.layer({ ...common, runnerAddress: Option.none() })),
    Layer.provide(frame),
    Layer.provide([Membership.clock, Membership.RunnerConnections.layer]),
  )
