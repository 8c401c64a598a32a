/** An Identity accepts commands by its Org and status, also while its actor waits for the commit that makes it ready. */
import { createSecretKey } from "node:crypto"
import type { ActorIdentity } from "@svc/cluster/actor/ActorHandlers"
import * as ActorHandlers from "@svc/cluster/actor/ActorHandlers"
import type { Ownership } from "@svc/cluster/actor/Ownership"
import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"

const org_id = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99"
const identity = (status: ActorIdentity["status"]): ActorIdentity => ({
  id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a98",
  orgId: org_id,
  handle: "ada",
  dataKey: Redacted.make(createSecretKey(new Uint8Array(32))),
  status,
})

/** An actor whose state is `known`, with a change in progress that will set it to `next`. */
const changing = (known: ActorIdentity, next: ActorIdentity): Ownership<ActorIdentity | undefined> => ({
  state: Effect.succeed(known),
  settled: Effect.succeed(next),
  write: (_, run) => run({} as never, next) as never,
  change: () => Effect.die("nothing is changed"),
})

const handlersOf = (known: ActorIdentity, next: ActorIdentity) =>
  ActorHandlers.make(
    changing(known, next),
    () => Effect.die("no part is needed"),
    () => Effect.void,
  )

const readThrough = (known: ActorIdentity, next: ActorIdentity) =>
  handlersOf(known, next).onReady(() => Effect.succeed("done"))({ payload: { org_id }, headers: {} })

it.effect("an Identity accepts commands as soon as its provisioning commits, and not before", () =>
  Effect.gen(function* () {
    expect(yield* readThrough(identity("provisioning"), identity("ready"))).toBe("done")
    const waiting = yield* Effect.flip(readThrough(identity("provisioning"), identity("provisioning")))
    expect(waiting).toMatchObject({ code: "identity_not_ready", agent_hint: "wait" })
    const going = yield* Effect.flip(readThrough(identity("deleting"), identity("ready")))
    expect(going).toMatchObject({ code: "identity_not_ready", agent_hint: "stop" })
  }),
)

it.effect("an Identity does not exist for another Org, whatever its status is", () =>
  Effect.gen(function* () {
    const other = { payload: { org_id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a97" }, headers: {} }
    for (const status of ["provisioning", "ready", "deleting"] as const) {
      const { onReady, onPresent } = handlersOf(identity(status), identity(status))
      for (const handler of [onReady, onPresent])
        expect(yield* Effect.flip(handler(() => Effect.succeed("done"))(other))).toMatchObject({ code: "not_found" })
      expect(yield* Effect.flip(ActorHandlers.requireOwner(identity(status), other.payload))).toMatchObject({
        code: "not_found",
      })
    }
  }),
)

it.effect(
  "a message from the gateway is written only if the Identity is ready, and refused in every other status",
  () =>
    Effect.gen(function* () {
      for (const status of ["provisioning", "failed", "deleting", "ready"] as const) {
        const { fromOutside } = handlersOf(identity(status), identity(status))
        const arrive = fromOutside(
          () => Effect.succeed("written"),
          (refused) => Effect.succeed(`refused by ${refused?.status}`),
        )
        const expected = status === "ready" ? "written" : `refused by ${status}`
        expect(yield* arrive({ payload: {}, headers: {} })).toBe(expected)
      }
    }),
)
