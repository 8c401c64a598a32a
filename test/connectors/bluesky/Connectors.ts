/** Identities that are connected to accounts of the Bluesky network, on actors in memory. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Platforms } from "@svc/cluster/connectors/platforms/Platforms"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { Timing } from "@svc/cluster/Timing"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { makeIdentity, waitUntil } from "../../harness/Actors.ts"
import { accountHolder, makeOrg } from "../../harness/Stores.ts"
import { connectors, rowOf } from "../ConnectedIdentity.ts"
import type { Context } from "./Context.ts"

export const askPlatform = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)

export const blueskyConnectors = (context: Context) => {
  const platforms = Platforms.layer({
    disclosure: "This account is automated.",
    // The servers' addresses are only known once the network runs.
    setting: (name) => {
      const { plc, pds, chat } = context.network
      return { SVC_BLUESKY_PLC_URL: plc, SVC_BLUESKY_HANDLE_RESOLVER: pds, SVC_BLUESKY_CHAT_DID: chat.did }[name]
    },
  }).pipe(Layer.provide(ServiceKey.layer))

  const person = (handle: string) => Effect.promise(() => context.network.person(handle))
  const connected = Effect.fnUntraced(function* (handle: string, options: { readonly disclose?: boolean } = {}) {
    const org_id = yield* makeOrg
    const { id } = yield* makeIdentity(org_id, handle)
    const owner = yield* person(`${handle}.test`)
    const actor = yield* connectors(handle, "bluesky")
    const password = yield* Effect.promise(() => owner.appPassword({ dm: true }))
    const login = { org_id, account: owner.handle, password, apply_disclosure: options.disclose ?? false }
    yield* askPlatform(actor.Login(login, onBehalfOf(accountHolder)))
    return { org_id, id, owner, actor, password }
  })

  /**
   * Advances the clock to the next poll and waits until the poll is recorded. The clock stops there, since calls time out after 20 seconds
   * of test time.
   */
  const nextPoll = Effect.fnUntraced(function* (id: string) {
    const { value: before } = yield* waitUntil(rowOf(id), (row) => row?.poll_due_at != null, 0)
    const isDone = (row: typeof before) => row?.polled_at?.getTime() !== before!.polled_at?.getTime()
    // A poll can fail on a busy machine, and is then due again later.
    for (let row = before, attempts = 5; !isDone(row); attempts--) {
      if (attempts === 0) throw new Error(`no poll succeeded: ${row?.last_error}`)
      const due = row!.poll_due_at!.getTime()
      yield* TestClock.adjust(due - (yield* Clock.currentTimeMillis) + 1_000)
      row = (yield* waitUntil(rowOf(id), (now) => isDone(now) || now!.poll_due_at!.getTime() > due, 0)).value
    }
  })

  return { platforms, person, connected, nextPoll }
}
