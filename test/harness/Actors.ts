/** Actors on a runner in memory, over a real database; time is the test's (`TestClock`). */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Identities } from "@svc/cluster/identity/Identities"
import * as IdentityActor from "@svc/cluster/identity/IdentityActor"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { type Reads, Writes } from "@svc/cluster/store/Database"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import { Clock, type Duration, Effect, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { databaseLayer } from "./Database.ts"
import { MasterKeysForTests } from "./MasterKeys.ts"

export const tunnelPorts = { first: 20_000, last: 20_099 }

export const sealingLayer = Layer.unwrap(Effect.map(Effect.promise(MasterKeysForTests), Sealing.layer))

const ports = Layer.effectDiscard(
  Effect.flatMap(
    Writes,
    (sql) =>
      sql`insert into tunnel_port (port) select generate_series(${tunnelPorts.first}::int, ${tunnelPorts.last}::int)`,
  ),
)

/** Identity actors, their clients and what they stand on; `steps` stands in for the saga's. */
export const identityActors = (
  steps: Layer.Layer<ProvisioningSteps, never, Sealing> = ProvisioningSteps.layer({ tunnelPorts }),
  limits: IdentityActor.IdentityLimits = { identityQuota: 25, mailboxBytes: 1024 * 1024, tunnelPorts },
) =>
  IdentityActor.layer(limits).pipe(
    Layer.provide(ChangeFeed.layer),
    Layer.provideMerge(Identities.layer),
    Layer.provide([steps, Deliveries.layer, GuardedClient.layer({ allowPrivate: true })]),
    Layer.provideMerge(Layer.mergeAll(TestRunner.layer, ports)),
    Layer.provideMerge(sealingLayer),
    Layer.provideMerge(databaseLayer),
    Layer.orDie,
  )

export const makeOrg = Effect.gen(function* () {
  const sql = yield* Writes
  const sealing = yield* Sealing
  const id = yield* makeUuidV7
  const { sealed } = yield* sealing.makeDataKey(id)
  yield* sql`
    insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
    values (${id}, ${`${id}@example.org`}, 'en', '1', now(), ${sealed}, now())`
  return id
})

/**
 * Looks at the store until it shows what is to come, and answers what it showed and how many milliseconds of the test's
 * time went by. That time goes on with each look, by `step`: who sleeps is woken, whenever it lay down.
 */
export const passing = <A>(
  look: Effect.Effect<A, unknown, Reads>,
  holds: (value: A) => boolean,
  step: Duration.Input = "100 millis",
) =>
  Effect.gen(function* () {
    const deadline = Date.now() + 20_000
    const start = yield* Clock.currentTimeMillis
    while (true) {
      const value = yield* Effect.orDie(look)
      if (holds(value)) return { value, millis: (yield* Clock.currentTimeMillis) - start }
      if (Date.now() > deadline) throw new Error(`did not come about; last seen: ${JSON.stringify(value)}`)
      yield* TestClock.adjust(step)
    }
  })
