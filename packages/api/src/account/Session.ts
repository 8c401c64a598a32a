/** The current session and the current caller. */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Caller, soleOf } from "@svc/domain/account/Authorization"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Grants } from "@svc/cluster/oauth/Grants"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { untagged } from "../EntityTags.ts"
import { RequestContext } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import { forget } from "./ConsoleSession.ts"

export const layer = RequestServices.group(
  Api,
  "session",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const grants = yield* Grants
    const book = yield* Addresses
    /** The browser that signs out also loses its cookie. */
    const leave = Effect.gen(function* () {
      forget(book, yield* HttpServerRequest.HttpServerRequest, yield* RequestContext)
    })

    return handlers.handleAll({
      read: Effect.fnUntraced(function* () {
        const caller = yield* Caller
        return {
          session:
            caller.session === null
              ? null
              : { id: caller.credentialId, expires_at: caller.session.expiresAt, created_at: caller.session.createdAt },
          org: caller.org,
          tos: yield* accounts.terms(caller.org),
        }
      }),
      revoke: Effect.fnUntraced(function* ({ headers }) {
        yield* untagged(headers["if-match"])
        const { credentialId, org } = yield* Caller
        // A session that has ended meanwhile already has the requested state.
        yield* Effect.catchTag(accounts.revokeSession(org.id, credentialId), "not_found", () => Effect.void)
        yield* leave
      }),
      list: Effect.fnUntraced(function* ({ query }) {
        const { credentialId, org } = yield* Caller
        const { entries, next_cursor } = yield* accounts.sessions(org.id, credentialId, query)
        return { sessions: entries, next_cursor }
      }),
      revokeOne: Effect.fnUntraced(function* ({ params, headers }) {
        yield* untagged(headers["if-match"])
        const { credentialId, org } = yield* Caller
        yield* accounts.revokeSession(org.id, params.id)
        if (params.id === credentialId) yield* leave
      }),
      revokeAll: Effect.fnUntraced(function* ({ query, headers }) {
        yield* untagged(headers["if-match"])
        const { org, by } = yield* Caller
        yield* accounts.revokeSessions(org.id, query.apps === "end" ? grants.revokeAll(org.id, by) : Effect.void)
        yield* leave
      }),
      whoami: () =>
        Effect.map(Caller, (caller) => {
          const sole = soleOf(caller)
          return {
            org: caller.org,
            caller: {
              kind: caller.kind,
              key_id: caller.kind === "admin_key" || caller.kind === "identity_key" ? caller.credentialId : null,
              key_name: caller.keyName,
              identity_id: sole?.id ?? null,
              handle: sole?.handle ?? null,
              handles: caller.identities?.map(({ handle }) => handle) ?? null,
              scopes: caller.scopes.names,
              networks: caller.networks?.names ?? null,
              expires_at: caller.expiresAt,
              grant_id: caller.grant?.id ?? null,
              client: caller.grant?.client ?? null,
            },
          }
        }),
    })
  }),
)
