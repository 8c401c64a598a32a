/** A saga whose process crashed or was suspended during a step, and the process that resumes it (docs/crash-matrix.md). */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Saga } from "@svc/domain/identity/Identity"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { Reads } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Layer, Logger } from "effect"
import { makeOrg, waitUntil, tunnelPorts } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"

/** The saga's steps, except that the step of the card signals `reached` and waits for `letGo` before it begins. */
const held = (reached: Deferred.Deferred<void>, release: Effect.Effect<void>) =>
  Layer.effect(
    ProvisioningSteps,
    Effect.map(Effect.service(ProvisioningSteps), (steps) => ({
      ...steps,
      card: (subject) =>
        Effect.andThen(Effect.andThen(Deferred.succeed(reached, undefined), release), steps.card(subject)),
    })),
  ).pipe(Layer.provide(ProvisioningSteps.layer({ tunnelPorts })))

const identityRow = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ status: string; saga: typeof Saga.Encoded }>`select status, saga from identity where canonical = ${handle}`,
      ([row]) => row,
    ),
  )

/** Returns what the steps have created, and the Events about it. */
const made = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql`
        select (select count(*)::int from mailbox where identity_id = i.id) as mailboxes,
               (select count(*)::int from tunnel_port where identity_id = i.id) as ports,
               (select count(*)::int from card where identity_id = i.id) as cards,
               (select count(*)::int from api_key where identity_id = i.id) as keys,
               (select array_agg(type order by seq) from event where identity_id = i.id) as told
        from identity i where canonical = ${handle}`,
      ([row]) => row,
    ),
  )
const complete = { mailboxes: 1, ports: 1, cards: 1, keys: 1, told: ["identity.ready"] }

/** Creates an Identity and waits until its process is in the step of the card. */
const create = Effect.fnUntraced(function* (handle: string, reached: Deferred.Deferred<void>) {
  const org_id = yield* makeOrg
  yield* ask((yield* Identities).of(handle).Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  yield* Deferred.await(reached)
})

layer(sharedServices, { timeout: "60 seconds" })("a saga interrupted within a step", (it) => {
  it.effect("is resumed by another process after a crash, which runs each step once", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      yield* create("ada", reached).pipe(Effect.provide(actorProcess(held(reached, Effect.never))))
      // Earlier steps share the commit of this step, which was not made.
      expect((yield* identityRow("ada"))!.saga.steps.map(({ status }) => status)).toEqual([
        "running",
        "pending",
        "pending",
        "pending",
      ])
      expect(yield* made("ada")).toEqual({ mailboxes: 0, ports: 0, cards: 0, keys: 0, told: null })
      yield* Layer.build(actorProcess())
      yield* waitUntil(identityRow("ada"), (row) => row?.status === "ready", "1 second")
      expect(yield* made("ada")).toEqual(complete)
    }),
  )

  it.effect("is resumed by another process after a freeze, and the first changes nothing when it wakes up", () =>
    Effect.gen(function* () {
      const release = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const log = Logger.make(({ message }) => {
        if (String(message).includes("interrupted")) Deferred.doneUnsafe(stopped, Effect.void)
      })
      const reached = yield* Deferred.make<void>()
      const frozen = yield* Layer.build(
        actorProcess(held(reached, Deferred.await(release))).pipe(Layer.provide(Logger.layer([log]))),
      )
      yield* create("grace", reached).pipe(Effect.provideContext(frozen))
      yield* Layer.build(actorProcess())
      const ready = yield* waitUntil(identityRow("grace"), (row) => row?.status === "ready", "1 second")
      yield* Deferred.succeed(release, undefined)
      yield* Deferred.await(stopped)
      expect(yield* identityRow("grace")).toEqual(ready.value)
      expect(yield* made("grace")).toEqual(complete)
    }),
  )
})
