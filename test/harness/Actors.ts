/** Actors on an in-memory runner over a real database, with the test's clock (`TestClock`). */
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Exports } from "@svc/cluster/account/exports/Exports"
import * as OrgActor from "@svc/cluster/capabilities/OrgActor"
import { Orgs } from "@svc/cluster/account/Orgs"
import * as ConnectorActor from "@svc/cluster/connectors/ConnectorActor"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { Platforms } from "@svc/cluster/connectors/platforms/Platforms"
import { Identities } from "@svc/cluster/actor/Identities"
import * as IdentityActor from "@svc/cluster/capabilities/IdentityActor"
import type { IdentityLimits } from "@svc/cluster/Capability"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import type { Sealing } from "@svc/cluster/sealing/Sealing"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import * as Composition from "@svc/mail-gateway/mail/composing/Composition"
import { Clock, type Duration, Effect, type Fiber, Layer } from "effect"
import { MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { patience } from "./Eventually.ts"
import { foundation, inProcess, makeOrg, rows } from "./Stores.ts"
import { transportLayer, recordingTransport } from "./Transport.ts"

export { makeOrg }

/** Enough for tests that run again for many planted bugs in one process. */
export const tunnelPorts = { first: 20_000, last: 21_999 }

const portsOf = ({ first, last }: typeof tunnelPorts) =>
  Layer.effectDiscard(
    Effect.flatMap(
      Writes,
      (sql) => sql`insert into tunnel_port (port) select generate_series(${first}::int, ${last}::int)`,
    ),
  )

/** The real platforms; each account names its own server. */
export const platforms = Platforms.layer({
  disclosure: "This account is automated.",
  setting: () => undefined,
}).pipe(Layer.provide(ServiceKey.layer))

const never = "10000 days"

/** A single runner that monitors no others, so that a day of test time does not trigger a day of health checks. */
const runner = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provideMerge(MessageStorage.layerNoop),
  Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(
    ShardingConfig.layer({
      shardLockExpiration: never,
      shardLockRefreshInterval: never,
      refreshAssignmentsInterval: never,
      runnerHealthCheckInterval: never,
      entityMessagePollInterval: never,
    }),
  ),
)

export interface ActorSettings {
  /** Replaces the provisioning steps. */
  readonly steps?: Layer.Layer<ProvisioningSteps, never, Sealing>
  readonly platforms?: typeof platforms
  /** The HTTP client of Connectors and Webhooks. */
  readonly client?: Layer.Layer<GuardedClient>
  readonly ports?: typeof tunnelPorts
  readonly limits?: Partial<IdentityLimits>
  /** Transport for outgoing mail; defaults to one that accepts everything. */
  readonly transport?: ReturnType<typeof recordingTransport>
  readonly quotas?: Partial<OrgActor.OrgQuotas>
}

/** Identity and Org actors, their clients, and the stores that they need. */
export const actors = (settings: ActorSettings = {}) => {
  const ports = settings.ports ?? tunnelPorts
  const limits = {
    identityQuota: 25,
    mailboxBytes: 1024 * 1024,
    mailHourly: 100,
    tunnelPorts: ports,
    ...settings.limits,
  }
  const unlimited = 1_000_000_000
  const quotas = {
    calls: unlimited,
    identity_create: unlimited,
    handle_check: unlimited,
    tunnel_transfer: unlimited,
    ...settings.quotas,
  }
  return Layer.mergeAll(
    IdentityActor.layer(limits),
    OrgActor.layer(quotas).pipe(Layer.provide(ServiceKey.layer)),
    ConnectorActor.layer,
    Exports.layer,
    Sending.layer,
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(Identities.layer, Orgs.layer, Connectors.layer, inProcess)),
    Layer.provide([
      settings.platforms ?? platforms,
      settings.steps ?? ProvisioningSteps.layer({ tunnelPorts: ports }),
      Deliveries.layer,
      settings.client ?? GuardedClient.layer({ allowPrivate: true }),
      Composition.layer,
      transportLayer(settings.transport ?? recordingTransport()),
    ]),
    Layer.provideMerge(Layer.mergeAll(runner, portsOf(ports))),
    Layer.provideMerge(foundation),
    Layer.orDie,
  )
}

/**
 * Polls the store until it shows the expected state, and returns that state and the elapsed test time in milliseconds.
 * Each poll advances the clock by `step`, which wakes sleeping fibers. A poll that queries the store keeps the clock
 * from running ahead of work in flight; use a `step` of 0 where a deadline must not pass, for example from the value on
 * that shows that an attempt has begun.
 */
export const waitUntil = <A, R>(
  read: Effect.Effect<A, unknown, R>,
  holds: (value: A) => boolean,
  step: Duration.Input | ((value: A) => Duration.Input) = "100 millis",
) =>
  Effect.gen(function* () {
    const deadline = Date.now() + patience
    const start = yield* Clock.currentTimeMillis
    while (true) {
      const value = yield* Effect.orDie(read)
      if (holds(value)) return { value, millis: (yield* Clock.currentTimeMillis) - start }
      if (Date.now() > deadline) throw new Error(`did not come about; last seen: ${JSON.stringify(value)}`)
      yield* TestClock.adjust(typeof step === "function" ? step(value) : step)
    }
  })

/**
 * Waits for a fiber to end while the clock advances, no faster than the store responds, since calls of actors have
 * timeouts in test time.
 */
export const awaitFiber = <A, E>(fiber: Fiber.Fiber<A, E>, step: Duration.Input = "5 millis") =>
  Effect.map(
    waitUntil(
      Effect.map(
        rows((sql) => sql`select 1`),
        () => fiber.pollUnsafe(),
      ),
      (exit) => exit !== undefined,
      step,
    ),
    ({ value }) => value!,
  )

/** Returns the Identity's row, or undefined after its deletion. */
export const identityOf = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ id: string; status: string; saga: { steps: ReadonlyArray<{ name: string; status: string }> } }>`
        select id, status, saga from identity where canonical = ${handle}`,
      ([row]) => row,
    ),
  )

/** Creates a ready Identity of the Org and returns its actor's client. */
export const makeIdentity = Effect.fnUntraced(function* (org_id: string, handle: string) {
  const actor = (yield* Identities).of(handle)
  const identity_id = yield* makeUuidV7
  yield* ask(actor.Create({ org_id, identity_id, handle }))
  yield* waitUntil(identityOf(handle), (row) => row?.status === "ready", 0)
  // The store becomes ready a moment before the actor does, which then removes an address that is not on its list.
  const nobody = ask(actor.DisallowRecipient({ org_id, address: "nobody@example.org" }))
  yield* waitUntil(Effect.flip(nobody), ({ code }) => code === "not_found", 0)
  return { id: identity_id, actor }
})
