/** Identities: reads come from the store, writes are asked of the Identity's actor. */
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/identity/Identities"
import { HandleRules } from "@svc/cluster/handles/HandleRules"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { commandId } from "../Exchange.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "identities",
  Effect.fn(function* (handlers) {
    const actors = yield* Identities
    const identities = yield* IdentityQueries
    const handles = yield* HandleRules

    /** The actor of an Identity that exists in the Org: no actor is woken for a name that does not. */
    const actorOf = Effect.fnUntraced(function* (handle: string) {
      const { org } = yield* Caller
      const name = canonical(handle)
      yield* identities.idOf(org.id, name)
      return { actor: actors.of(name), org_id: org.id, view: identities.read(org.id, name) }
    })

    return handlers.handleAll({
      list: () =>
        Effect.flatMap(Caller, ({ org }) => Effect.map(identities.list(org.id), (found) => ({ identities: found }))),
      create: Effect.fnUntraced(function* ({ payload }) {
        const { org } = yield* Caller
        const identity_id = yield* commandId
        // A repeat of the request finds the name taken by what the first one made.
        const made = yield* Effect.option(identities.read(org.id, canonical(payload.handle)))
        if (made._tag === "Some" && made.value.id === identity_id) return made.value
        const name = yield* handles.claimable(payload.handle)
        yield* ask(actors.of(name.canonical).Create({ org_id: org.id, identity_id, handle: name.handle }))
        return yield* Effect.catchTag(identities.read(org.id, name.canonical), "not_found", Effect.die)
      }),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => identities.read(org.id, canonical(params.handle))),
      remove: Effect.fnUntraced(function* ({ params }) {
        const { actor, org_id, view } = yield* actorOf(params.handle)
        // A teardown may have ended by the time we look, so the view before it is what we answer then.
        const before = yield* view
        yield* ask(actor.Delete({ org_id }))
        return yield* Effect.catchTag(view, "not_found", () =>
          Effect.succeed({ ...before, status: "deleting" as const }),
        )
      }),
      retry: Effect.fnUntraced(function* ({ params }) {
        const { actor, org_id, view } = yield* actorOf(params.handle)
        yield* ask(actor.Retry({ org_id }))
        return yield* view
      }),
      secrets: ({ params }) =>
        Effect.flatMap(Caller, ({ org }) => identities.secrets(org.id, canonical(params.handle))),
      acknowledge: Effect.fnUntraced(function* ({ params }) {
        const { actor, org_id } = yield* actorOf(params.handle)
        yield* ask(actor.Acknowledge({ org_id }))
      }),
      rotate: Effect.fnUntraced(function* ({ params }) {
        const { actor, org_id } = yield* actorOf(params.handle)
        yield* ask(actor.RotateKey({ org_id }))
      }),
    })
  }),
)
