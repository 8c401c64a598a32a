/**
 * Benchmarks actor requests within one process and between two: for the service's actors, for an empty cluster entity
 * of the library, and for Effect's RPC over the same kind of socket.
 */
import { NodeSocket } from "@effect/platform-node"
import * as Cluster from "@svc/cluster/Cluster"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { Health } from "@svc/cluster/health/Health"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { Identities } from "@svc/cluster/actor/Identities"
import * as IdentityActor from "@svc/cluster/capabilities/IdentityActor"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import * as Stores from "@svc/cluster/store/Database"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import { Context, Effect, Exit, Layer, Redacted, Schema, Scope } from "effect"
import { MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { inStore, settingsOf } from "../faults/Store.ts"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { addresses } from "../harness/Stores.ts"
import { deploy, type Deployment, until } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"
import { transportLayer, recordingTransport } from "../harness/Transport.ts"
import * as BareEntity from "./BareEntity.ts"
import { Echo } from "./EchoServer.ts"
import { work } from "./Load.ts"
import * as References from "./References.ts"
import { drift, figuresOf, inTurn, shareOf } from "./Turns.ts"

/** Number of concurrent requests. */
export const width = 64
/** Number of actors that receive requests in turn. */
const actors = 20
/** The service's master key, so that an actor of this process can decrypt what the service sealed. */
export const masterKey = Buffer.alloc(32, 7).toString("base64")
const tunnelPorts = { first: 20_000, last: 20_999 }
const limits = { identityQuota: 1_000_000, mailboxBytes: 1024 ** 3, mailHourly: 1_000_000, tunnelPorts }

/** The client of an entity that does nothing. */
class Bare extends Context.Service<Bare, { readonly of: Effect.Success<typeof BareEntity.BareEntity.client> }>()(
  "@svc/test/bench/Bare",
) {
  static readonly layer = Layer.effect(
    Bare,
    Effect.map(BareEntity.BareEntity.client, (of) => ({ of })),
  )
}

/** A cluster of this process only. */
const here = Sharding.layer.pipe(
  Layer.provide([Runners.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(MessageStorage.layerNoop),
  Layer.provide(ShardingConfig.layer({ simulateRemoteSerialization: false })),
)

const sealing = Layer.unwrap(Effect.map(Effect.orDie(parseMasterKeys(masterKey)), Sealing.layer))

/** The service's actors and empty entities in this process. */
const inProcess = (deployment: Deployment) => {
  const carried = IdentityActor.layer(limits).pipe(
    Layer.provide([
      Deliveries.layer,
      GuardedClient.layer({ allowPrivate: true }),
      transportLayer(recordingTransport()),
      ProvisioningSteps.layer({ tunnelPorts }),
      Connectors.layer,
    ]),
    Layer.provide([ChangeFeed.layer, UsageCounters.layer]),
    Layer.provide(addresses),
    Layer.merge(BareEntity.layer),
  )
  return Layer.mergeAll(Identities.layer, Bare.layer).pipe(
    Layer.provideMerge(carried),
    Layer.provide(here),
    Layer.provide(sealing),
    Layer.provide(Layer.fresh(Stores.layer(settingsOf(deployment)))),
    Layer.provide(BareEntity.untraced),
  )
}

export const gateway = (settings: Stores.ConnectionSettings) =>
  Cluster.gateway(undefined).pipe(
    Layer.provide([ChangeFeed.layer, UsageCounters.layer]),
    Layer.provide(sealing),
    Layer.provide(Layer.fresh(Stores.layer(settings))),
    Layer.provide(Health.layer),
    Layer.provide(BareEntity.untraced),
    Layer.fresh,
  )

const echoClient = (port: number) =>
  RpcClient.layerProtocolSocket().pipe(
    Layer.provide(NodeSocket.layerNet({ host: "127.0.0.1", port })),
    Layer.provide(RpcSerialization.layerSchemaBinary()),
  )

/** A process with empty entities, in its own cluster and database on the same server. */
const bareRunner = async (deployment: Deployment) => {
  await inStore(deployment, "create database bare")
  const settings = { ...settingsOf(deployment), database: "bare" }
  const place = Schema.encodeSync(BareEntity.Place)({
    path: settings.path!,
    username: settings.username!,
    password: Redacted.value(settings.password!),
    database: settings.database,
    masterKey,
  })
  return { settings, ...(await References.started(`${import.meta.dirname}/BareEntity.ts`, place)) }
}

export const ask = async (): Promise<Row> => {
  const deployment = await deploy()
  const scope = Scope.makeUnsafe()
  const children: Array<References.Reference> = []
  try {
    const service = await deployment.start([], { SVC_MASTER_KEY: masterKey })
    const { session, org } = await signUp(service.base)
    const make = async () => (await makeIdentity(service.base, session)).handle
    // Actors of this process must not be actors of the service process as well.
    const there = await Promise.all(Array.from({ length: actors }, make))
    const local = await Promise.all(Array.from({ length: actors }, make))
    const echo = await References.echo()
    children.push(echo)
    const bare = await bareRunner(deployment)
    children.push(bare)

    const built = <A, E>(layer: Layer.Layer<A, E>) =>
      Effect.runPromise(Layer.buildWithScope(layer, scope)).then((context) => Effect.runPromiseWith(context))
    const payload = { org_id: org.id as string }
    const theirs = await built(
      Identities.layer.pipe(Layer.provide(gateway(settingsOf(deployment))), Layer.provide(BareEntity.untraced)),
    )
    const bares = await built(Bare.layer.pipe(Layer.provide(gateway(bare.settings))))
    const ours = await built(inProcess(deployment))
    const echoes = await built(echoClient(echo.port))
    const [across, bareAcross, inside] = [
      (await theirs(Effect.service(Identities))).of,
      (await bares(Effect.service(Bare))).of,
      await ours(Effect.all({ own: Effect.service(Identities), bare: Effect.service(Bare) })),
    ]
    const client = await echoes(
      Effect.provideService(RpcClient.make(Echo, { disableTracing: true }), Scope.Scope, scope),
    )

    // `Retry` of a ready Identity is answered from the actor's memory.
    const asks = {
      across: (worker: number) => theirs(across(there[worker % actors]!).Retry(payload)),
      bareAcross: (worker: number) => bares(bareAcross(`b${worker % actors}`).Ask(payload)),
      inside: (worker: number) => ours(inside.own.of(local[worker % actors]!).Retry(payload)),
      bareInside: (worker: number) => ours(inside.bare.of(`b${worker % actors}`).Ask(payload)),
    }
    for (const [name, one] of Object.entries<(worker: number) => Promise<void>>(asks)) {
      await until(`an answer ${name}`, () =>
        one(0).then(
          () => true,
          () => false,
        ),
      )
    }
    const got = await inTurn({
      echo: { drive: work(width, () => echoes(client.Echo(payload))), pid: echo.pid },
      "bare entity across": { drive: work(width, asks.bareAcross), pid: bare.pid },
      across: { drive: work(width, asks.across), pid: service.child.pid! },
      "bare entity in process": { drive: work(width, asks.bareInside), pid: process.pid },
      "in process": { drive: work(width, asks.inside), pid: process.pid },
    })
    const single = await work(1, asks.across)(1)
    return {
      id: "ask",
      ok: true,
      what: `requests to actors, ${width} concurrently, between two processes and within one, compared with an Effect RPC echo over the same kind of socket`,
      unreliable: drift({ rate: { "the echo": got.echo } }),
      goals: [{ what: "across to echo", value: shareOf(got.across, got.echo), atLeast: 0.6 }],
      figures: {
        "bare entity across to echo": shareOf(got["bare entity across"], got.echo),
        "across to bare entity": shareOf(got.across, got["bare entity across"]),
        "in process to bare entity": shareOf(got["in process"], got["bare entity in process"]),
        "across alone p50 ms": round(single.p50),
        ...Object.assign({}, ...Object.entries(got).map(([name, one]) => figuresOf(name, one))),
      },
    }
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    for (const child of children) child.stop()
    await deployment.stop()
  }
}
