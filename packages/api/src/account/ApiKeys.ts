import { Api } from "@svc/domain/Api"
import { Caller, Subject } from "@svc/domain/account/Authorization"
import { ApiKey } from "@svc/domain/account/Account"
import { type RequestedRights, judgeRights } from "@svc/domain/account/KeyRights"
import { wholeList } from "@svc/domain/Paging"
import type { Problem } from "@svc/domain/problems/Problem"
import { isScope } from "@svc/domain/ScopeTable"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import type { AuditNote } from "@svc/cluster/actor/Write"
import type { NewKey } from "@svc/cluster/credentials/CredentialMint"
import { Clock, Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as AuditNotes from "../audit/AuditNotes.ts"
import * as RequestServices from "../http/RequestServices.ts"
import { unchanged } from "../EntityTags.ts"
import { commandId, RequestContext, unlessMade } from "../RequestContext.ts"

/** The default overlap of a key and its replacement. */
const overlapSeconds = 86_400

const sameKey = unchanged(ApiKey)

export const layer = RequestServices.group(
  Api,
  "api_keys",
  Effect.fn(function* (handlers) {
    const keys = yield* ApiKeys
    const noting = yield* AuditNotes.make

    /** The new key with its location; a repeat returns the location only. */
    const located = Effect.fnUntraced(function* <A, E extends Problem>(
      make: (id: string, note: AuditNote | undefined) => Effect.Effect<A, E>,
    ) {
      const exchange = yield* RequestContext
      const id = yield* commandId
      const location = `/api/keys/${id}`
      const body = yield* noting((note) => make(id, note), id).pipe(
        Effect.tapError(({ code }) =>
          Effect.sync(() => code === "conflict" && (exchange.headers["location"] = location)),
        ),
      )
      return HttpApiSchema.withHeaders({ body, headers: { location } })
    })

    /** Names the Identity of an existing key in the audit record. */
    const recordIdentityOf = Effect.fnUntraced(function* (org: string, id: string) {
      const owner = yield* keys.ownerOf(org, id)
      const exchange = yield* RequestContext
      if (owner !== undefined) exchange.about = { identity: owner }
    })

    const create = Effect.fnUntraced(function* (
      { name, ...requested }: RequestedRights & { readonly name: string },
      identity: NewKey["identity"],
    ) {
      const caller = yield* Caller
      const now = yield* Clock.currentTimeMillis
      const rights = yield* Effect.fromResult(judgeRights(caller, requested, isScope, now))
      return yield* located((id, note) => keys.create(caller.org.id, { id, name, rights, identity }, caller.by, note))
    })

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* keys.list((yield* Caller).org.id, wholeList(query))
        return { api_keys: entries, next_cursor }
      }),
      // An Admin Key has no Identity that could be unready.
      create: ({ payload }) => Effect.catchTag(create(payload, null), "identity_not_ready", Effect.die),
      createForIdentity: Effect.fnUntraced(function* ({ payload }) {
        const { id, handle } = yield* Subject
        return yield* create(payload, { id, handle })
      }),
      rotate: Effect.fnUntraced(function* ({ params, payload }) {
        const caller = yield* Caller
        yield* recordIdentityOf(caller.org.id, params.id)
        const overlap = payload?.overlap_seconds ?? overlapSeconds
        return yield* located((id, note) => keys.rotate(caller, params.id, id, overlap, caller.by, note))
      }),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => keys.read(org.id, params.id)),
      revoke: Effect.fnUntraced(function* ({ params, headers }) {
        const caller = yield* Caller
        yield* recordIdentityOf(caller.org.id, params.id)
        yield* sameKey(headers["if-match"], keys.read(caller.org.id, params.id))
        yield* unlessMade(noting((note) => keys.revoke(caller.org.id, params.id, caller.by, note)))
      }),
    })
  }),
)
