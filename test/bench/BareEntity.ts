/**
 * An empty cluster entity on the same runner as the service's actors: the cost of a request without an actor of the
 * service. As a process, it serves such entities over the given database and prints a line when it is ready.
 */
import { NodeRuntime } from "@effect/platform-node"
import * as Cluster from "@svc/cluster/Cluster"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { Health } from "@svc/cluster/health/Health"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Layer, Redacted, References, Schema } from "effect"
import { ClusterSchema, Entity, Sharding } from "effect/cluster"
import { Rpc } from "effect/rpc"

export const BareEntity = Entity.make("Bare", [Rpc.make("Ask", { payload: { org_id: Schema.String } })]).annotate(
  ClusterSchema.ClientTracingEnabled,
  false,
)

/** Disables tracing, as in a service without an exporter. */
export const untraced = Layer.succeed(References.TracerEnabled, false)

export const layer = BareEntity.toLayer({ Ask: () => Effect.void }, { disableFatalDefects: true })

/** The database and the shared key of the runners, as an argument between processes. */
export const Place = Schema.fromJsonString(
  Schema.Struct({
    path: Schema.String,
    username: Schema.String,
    password: Schema.String,
    database: Schema.String,
    masterKey: Schema.String,
  }),
)

if (import.meta.main) {
  const { password, masterKey, ...place } = Schema.decodeSync(Place)(process.argv[2]!)
  const announce = Layer.effectDiscard(
    Effect.andThen(
      Sharding.Sharding,
      Effect.sync(() => console.log("0")),
    ),
  )
  Layer.merge(layer, announce).pipe(
    Layer.provide(Cluster.runner({ host: "127.0.0.1", port: 0 })),
    Layer.provide([ChangeFeed.layer, UsageCounters.layer]),
    Layer.provide(Layer.unwrap(Effect.map(parseMasterKeys(masterKey), Sealing.layer))),
    Layer.provide(Stores.layer({ ...place, password: Redacted.make(password) })),
    Layer.provide(Health.layer),
    Layer.provide(untraced),
    Layer.launch,
    NodeRuntime.runMain,
  )
}
