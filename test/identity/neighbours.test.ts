/** Calls between actors of one process: each message is processed by the actor that it is addressed to. */
import { ask } from "@svc/cluster/actor/Ask"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Entity, EntityAddress, EntityId, EntityType, ShardId } from "effect/cluster"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

layer(actors())("an actor", (it) => {
  it.effect("runs its own handler when another actor in the same process calls it", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const name = newHandle("ada")
      const ada = yield* makeIdentity(org_id, name)
      const grace = yield* makeIdentity(org_id, newHandle("grace"))
      // The library passes the context of the calling fiber, including the caller's address, to the called actor.
      const address = new EntityAddress.EntityAddress({
        entityType: EntityType.make("Identity"),
        entityId: EntityId.make(name),
        shardId: ShardId.make("default", 1),
      })
      const fromAda = Effect.provideService(Entity.CurrentAddress, address)
      yield* ask(grace.actor.ReceiveMail(yield* receivedMail())).pipe(fromAda)
      yield* ask(grace.actor.PatchCard({ org_id, patch: { name: "Grace" }, if_version: null })).pipe(fromAda)
      const of = (id: string) =>
        rows(
          (sql) => sql`select (select count(*)::int from message where identity_id = ${id}) as letters,
            (select fields ->> 'name' from card where identity_id = ${id}) as name`,
        )
      expect(yield* of(grace.id)).toEqual([{ letters: 1, name: "Grace" }])
      expect(yield* of(ada.id)).toEqual([{ letters: 0, name }])
    }),
  )
})
