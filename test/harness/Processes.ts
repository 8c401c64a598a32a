/**
 * Several actor processes over one database, each with its own in-memory runner, so that each believes it owns every
 * entity, like a suspended process whose shards have moved. Uses the test's clock (`TestClock`).
 */
import * as OrgActor from "@svc/cluster/capabilities/OrgActor"
import { Orgs } from "@svc/cluster/account/Orgs"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import * as ConnectorActor from "@svc/cluster/connectors/ConnectorActor"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { Identities } from "@svc/cluster/actor/Identities"
import * as IdentityActor from "@svc/cluster/capabilities/IdentityActor"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import type { Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import * as Overdue from "@svc/cluster/work/Overdue"
import * as Stores from "@svc/cli/serve/roles/Stores"
import { Addresses } from "@svc/domain/Addresses"
import { Effect, Layer } from "effect"
import { EntityId, Sharding, TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { platforms, tunnelPorts } from "./Actors.ts"
import { databaseLayer } from "./Database.ts"
import { sealingLayer } from "./Stores.ts"
import { transportLayer, recordingTransport } from "./Transport.ts"

const quotas = { calls: 100, identity_create: 100, handle_check: 100, tunnel_transfer: 1_000_000 }
const limits = { identityQuota: 25, mailboxBytes: 1024 * 1024, mailHourly: 100, tunnelPorts }

const ports = Layer.effectDiscard(
  Effect.flatMap(
    Writes,
    (sql) =>
      sql`insert into tunnel_port (port) select generate_series(${tunnelPorts.first}::int, ${tunnelPorts.last}::int)`,
  ),
).pipe(Layer.orDie)

const addresses = Layer.succeed(Addresses, {
  environment: "development",
  baseUrl: "http://localhost",
  profileBase: "http://localhost",
  mailDomain: "mail.localhost",
  tunnelDomain: "tunnel.localhost",
  tunnelScheme: "http",
  tunnelPort: undefined,
  mcpOrigins: [],
  imap: { host: "localhost", port: 1143, security: "starttls" },
  submission: { host: "localhost", port: 1587, security: "starttls" },
})

/** Services that the processes of a test share. */
export const sharedServices = Layer.mergeAll(ports, addresses, sealingLayer).pipe(Layer.provideMerge(databaseLayer))

/** Waits until the process owns its shards; before that, calls of actors would wait for the clock to advance. */
const hasShards = Layer.effectDiscard(
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    while (!sharding.hasShardId(sharding.getShardId(EntityId.make("any"), "default")))
      yield* TestClock.adjust("100 millis")
  }),
)

/** The role `actors` of a process; `steps` replaces the provisioning steps. */
export const actorProcess = (
  steps: Layer.Layer<ProvisioningSteps, never, Sealing> = ProvisioningSteps.layer({ tunnelPorts }),
  transport = recordingTransport(),
) =>
  Layer.mergeAll(
    IdentityActor.layer(limits),
    OrgActor.layer(quotas).pipe(Layer.provide([Stores.layer, ServiceKey.layer])),
    Overdue.layer(IdentityActor.watched),
    Overdue.layer(OrgActor.watched),
    ConnectorActor.layer.pipe(Layer.provide(platforms)),
    Overdue.layer(ConnectorWork.watched),
  ).pipe(
    Layer.provide([steps, Deliveries.layer, GuardedClient.layer({ allowPrivate: true }), transportLayer(transport)]),
    Layer.provide([ChangeFeed.layer, UsageCounters.layer]),
    Layer.provideMerge(Layer.mergeAll(Identities.layer, Orgs.layer, Connectors.layer)),
    Layer.provideMerge(hasShards),
    Layer.provide(TestRunner.layer),
    Layer.fresh,
    Layer.orDie,
  )
