/** The Grants of the caller's account. */
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { Grant } from "@svc/domain/oauth/Grant"
import { InvalidRequest, ScopeUnknown } from "@svc/domain/problems/Problem"
import { Grants } from "@svc/cluster/oauth/Grants"
import { Clock, Effect } from "effect"
import * as AuditNotes from "../audit/AuditNotes.ts"
import { unchanged } from "../EntityTags.ts"
import { unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import { grantable } from "./OfferedScopes.ts"

const asRead = unchanged(Grant)
const yearMillis = 366 * 24 * 60 * 60 * 1000

export const layer = RequestServices.group(
  Api,
  "grants",
  Effect.fn(function* (handlers) {
    const grants = yield* Grants
    const noting = yield* AuditNotes.make

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* grants.list((yield* Caller).org.id, query)
        return { grants: entries, next_cursor }
      }),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => grants.read(org.id, params.id)),
      update: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const { org, by } = yield* Caller
        const seen = yield* asRead(headers["if-match"], grants.read(org.id, params.id))
        const unknown = payload.scopes?.filter((name) => !grantable.has(name)) ?? []
        if (unknown.length > 0) {
          return yield* new ScopeUnknown({ detail: `Apps cannot be granted ${unknown.slice(0, 5).join(", ")}.` })
        }
        const now = yield* Clock.currentTimeMillis
        const end = payload.expires_at?.getTime()
        if (payload.scopes?.length === 0 || (end !== undefined && !(end > now && end <= now + yearMillis))) {
          const path = payload.scopes?.length === 0 ? "/scopes" : "/expires_at"
          const message = path === "/scopes" ? "expected at least one scope" : "expected a time within a year from now"
          return yield* new InvalidRequest({ detail: `${path.slice(1)}: ${message}.`, errors: [{ path, message }] })
        }
        const patch = payload.scopes === undefined ? payload : { ...payload, scopes: [...new Set(payload.scopes)] }
        yield* unlessMade(noting((note) => grants.change(org.id, params.id, patch, seen, by, note)))
        return yield* grants.read(org.id, params.id)
      }),
      revoke: Effect.fnUntraced(function* ({ params, headers }) {
        const { org, by } = yield* Caller
        yield* asRead(headers["if-match"], grants.read(org.id, params.id))
        yield* unlessMade(noting((note) => grants.revoke(org.id, params.id, by, note)))
      }),
    })
  }),
)
