/** The Identity endpoints: reads go to the store, writes to the Identity's actor. */
import { Api } from "@svc/domain/Api"
import { Caller, Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { fallsShort } from "@svc/domain/account/KeyRights"
import { Identity } from "@svc/domain/identity/Identity"
import { canonical } from "@svc/domain/handles/Handle"
import { wholeList } from "@svc/domain/Paging"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { HandleRules } from "@svc/cluster/handles/HandleRules"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import * as AuditNotes from "../audit/AuditNotes.ts"
import { unchanged } from "../EntityTags.ts"
import { commandId, RequestContext } from "../RequestContext.ts"

const sameIdentity = unchanged(Identity)

const accepted = (body: Identity) =>
  HttpApiSchema.withHeaders({ body, headers: { location: `/api/identities/${body.handle}` } })

/** Fails for callers with fewer rights than the Identity Key. */
const ofFullRights = Effect.flatMap(Caller, (caller) => {
  const refused = fallsShort(caller)
  return refused === undefined ? Effect.void : Effect.fail(refused)
})

export const layer = RequestServices.group(
  Api,
  "identities",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const actors = yield* Identities
    const noting = yield* AuditNotes.make
    const identities = yield* IdentityQueries
    const handles = yield* HandleRules

    const view = (subject: SubjectInfo) => identities.read(subject.orgId, subject.canonical)

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const caller = yield* Caller
        const { entries, next_cursor } = yield* identities.list(caller.org.id, wholeList(query), caller.identities)
        return { identities: entries, next_cursor }
      }),
      create: Effect.fnUntraced(function* ({ payload }) {
        const { org, by } = yield* Caller
        const identity_id = yield* commandId
        const name = yield* handles.claimable(payload.handle).pipe(
          Effect.map((wanted) => ({ ...wanted, made: null })),
          // A repeat finds the name taken by the first request.
          Effect.catchTag("handle_taken", (taken) =>
            identities.read(org.id, canonical(payload.handle)).pipe(
              Effect.catchTag("not_found", () => Effect.fail(taken)),
              Effect.flatMap((found) =>
                found.id === identity_id ? Effect.succeed({ made: found }) : Effect.fail(taken),
              ),
            ),
          ),
        )
        if (name.made !== null) return accepted(name.made)
        // There is no Identity to authorize yet, so its actor is called directly.
        const { canonical: id, handle } = name
        const exchange = yield* RequestContext
        exchange.about = { identity: { id: identity_id, handle } }
        yield* noting(
          ActorCalls.storedByActor((note) =>
            ask(actors.of(id).Create({ org_id: org.id, identity_id, handle }, onBehalfOf(by, undefined, note))),
          ),
          handle,
        )
        return accepted(yield* Effect.catchTag(identities.read(org.id, name.canonical), "not_found", Effect.die))
      }),
      read: () => Effect.flatMap(Subject, view),
      remove: Effect.fnUntraced(function* ({ headers }) {
        const subject = yield* Subject
        // The deletion may have completed before the read; then the view from before is returned.
        const before = yield* view(subject)
        yield* sameIdentity(headers["if-match"], Effect.succeed(before))
        yield* askIdentity(subject, (actor, by) => actor.Delete({ org_id: subject.orgId }, by))
        const after = yield* Effect.catchTag(view(subject), "not_found", () =>
          Effect.succeed({ ...before, status: "deleting" as const }),
        )
        return accepted(after)
      }),
      retry: Effect.fnUntraced(function* () {
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) => actor.Retry({ org_id: subject.orgId }, by))
        return accepted(yield* view(subject))
      }),
      secrets: Effect.fnUntraced(function* () {
        yield* ofFullRights
        const { orgId, canonical } = yield* Subject
        return yield* identities.secrets(orgId, canonical)
      }),
      acknowledge: Effect.fnUntraced(function* () {
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) => actor.Acknowledge({ org_id: subject.orgId }, by))
      }),
      rotate: Effect.fnUntraced(function* () {
        yield* ofFullRights
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) => actor.RotateKey({ org_id: subject.orgId }, by))
      }),
    })
  }),
)

/** An unavailable name is a result, not an error. The check reserves nothing. */
export const handles = RequestServices.group(
  Api,
  "handles",
  Effect.fn(function* (handlers) {
    const handles = yield* HandleRules
    return handlers.handle("check", ({ params }) =>
      handles.claimable(params.handle).pipe(
        Effect.map((name) => ({ handle: name.handle, available: true })),
        Effect.catchTags({
          handle_invalid: (refusal) => unavailable(params.handle, refusal),
          handle_reserved: (refusal) => unavailable(params.handle, refusal),
          handle_taken: (refusal) => unavailable(params.handle, refusal),
        }),
      ),
    )
  }),
)

const unavailable = <const Code extends string>(
  handle: string,
  refusal: { readonly code: Code; readonly detail: string },
) => Effect.succeed({ handle, available: false, code: refusal.code, detail: refusal.detail })
