import { makeUuidV7 } from "@svc/domain/Ids"
import { system } from "@svc/domain/account/Initiator"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

const ready = Effect.fnUntraced(function* (stem: string) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const actor = (yield* Identities).of(handle)
  yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  yield* waitUntil(
    Effect.flatMap(Reads, (sql) => sql`select 1 from identity where canonical = ${handle} and status = 'ready'`),
    (rows) => rows.length === 1,
  )
  return { org_id, handle, actor }
})
const count = (handle: string, type: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ n: number }>`
        select count(*)::int as n from event e join identity i on i.canonical = ${handle}
        where e.type = ${type} and (e.identity_id = i.id or e.data ->> 'identity_id' = i.id::text)`,
      ([row]) => row!.n,
    ),
  )

layer(actors())("a repeated command", (it) => {
  it.effect("is carried out once and gets the same response", () =>
    Effect.gen(function* () {
      const { org_id, handle, actor } = yield* ready("twice")
      const by = onBehalfOf(system, yield* makeUuidV7)
      const other = onBehalfOf(system, yield* makeUuidV7)
      const webhook_id = yield* makeUuidV7
      yield* ask(
        actor.RegisterWebhook(
          { org_id, webhook_id, url: "http://127.0.0.1:9/", event_types: ["*"], description: null },
          by,
        ),
      )
      const patch = { org_id, webhook_id, patch: { description: "new" }, if_version: [1] }
      yield* ask(actor.PatchWebhook(patch, by))
      yield* ask(actor.PatchWebhook(patch, by))
      expect(yield* Effect.flip(ask(actor.PatchWebhook(patch, other)))).toMatchObject({ code: "precondition_failed" })

      yield* ask(actor.RemoveWebhook({ org_id, webhook_id }, by))
      yield* ask(actor.RemoveWebhook({ org_id, webhook_id }, by))
      expect(yield* Effect.flip(ask(actor.RemoveWebhook({ org_id, webhook_id }, other)))).toMatchObject({
        code: "not_found",
      })

      // A repeated refusal is a refusal: it does not say that the change was made.
      const nobody = { org_id, address: "nobody@example.org" }
      const refused = [
        Effect.flip(ask(actor.RemoveWebhook({ org_id, webhook_id }, other))),
        Effect.flip(ask(actor.DisallowRecipient(nobody, other))),
        Effect.flip(ask(actor.LiftSuppression(nobody, other))),
        Effect.flip(ask(actor.RemoveMessage({ org_id, message_id: yield* makeUuidV7 }, other))),
      ]
      for (const refusal of [...refused, ...refused]) {
        expect(yield* refusal).toMatchObject({ code: "not_found" })
      }

      const card = { org_id, patch: { description: "an agent" }, if_version: [1] }
      yield* ask(actor.PatchCard(card, by))
      yield* ask(actor.PatchCard(card, by))
      expect(yield* count(handle, "card.updated")).toBe(1)

      yield* ask(actor.SetDisclosure({ org_id, text: "by a machine", if_version: [1] }, by))
      yield* ask(actor.SetDisclosure({ org_id, text: "by a machine", if_version: [1] }, by))
      const stop = { org_id, patch: { outgoing: "stopped" as const }, if_version: [1] }
      yield* ask(actor.SwitchMail(stop, by))
      yield* ask(actor.SwitchMail(stop, by))
      expect(yield* count(handle, "mail.stopped")).toBe(1)

      yield* ask(actor.AllowRecipient({ org_id, address: "a@example.org" }, by))
      yield* ask(actor.DisallowRecipient({ org_id, address: "a@example.org" }, by))
      yield* ask(actor.DisallowRecipient({ org_id, address: "a@example.org" }, by))

      const keys = yield* count(handle, "api_key.created")
      yield* ask(actor.RotateKey({ org_id }, by))
      yield* ask(actor.RotateKey({ org_id }, by))
      expect(yield* count(handle, "api_key.created")).toBe(keys + 1)
    }),
  )
})
