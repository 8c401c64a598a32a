/** A Webhook of an Identity on actors, with a real receiver. */
import { ask } from "@svc/cluster/actor/Ask"
import type { Attempt } from "@svc/domain/deliveries/Delivery"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import { makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { rows } from "../harness/Stores.ts"

/** Starts a receiver, which stops with the scope. */
export const receiverOf = (...answer: Parameters<typeof startReceiver>) =>
  Effect.acquireRelease(
    Effect.promise(() => startReceiver(...answer)),
    ({ stop }) => Effect.promise(stop),
  )

export interface Delivery {
  readonly id: string
  readonly status: string
  readonly attempts: ReadonlyArray<typeof Attempt.Encoded>
  readonly attempt_started_at: Date | null
  readonly next_attempt_at: Date | null
}

/** Returns the deliveries of a Webhook, oldest first. */
export const deliveries = (webhook: string) =>
  rows(
    (sql) => sql<Delivery>`
      select id, status, attempts, attempt_started_at, next_attempt_at from delivery where webhook_id = ${webhook} order by id`,
  )
export const oldest = (webhook: string) => Effect.map(deliveries(webhook), ([first]) => first)

/** Creates a ready Identity with a Webhook, and returns actions on both. */
export const makeWebhook = Effect.fnUntraced(function* (stem: string, url: string, event_types = ["webhook.test"]) {
  const org_id = yield* makeOrg
  const handle = newHandle(stem)
  const { actor, id } = yield* makeIdentity(org_id, handle)
  const webhook_id = yield* makeUuidV7
  const register = (webhook_id: string, url: string, event_types: ReadonlyArray<string>) =>
    ask(actor.RegisterWebhook({ org_id, webhook_id, url, event_types, description: null }))
  const { signing_secret } = yield* register(webhook_id, url, event_types)
  const test = Effect.gen(function* () {
    const [delivery_id, event_id] = [yield* makeUuidV7, yield* makeUuidV7]
    yield* ask(actor.TestWebhook({ org_id, webhook_id, delivery_id, event_id }))
    return delivery_id
  })
  return { org_id, actor, handle, identity_id: id, webhook_id, signing_secret, register, test }
})
