import { Api } from "@svc/domain/Api"
import { Realm } from "@svc/domain/account/Authorization"
import { wholeList } from "@svc/domain/Paging"
import { PreconditionFailed } from "@svc/domain/problems/Problem"
import { ifTag, secretTag } from "@svc/domain/vault/SecretTag"
import type { Namespace } from "@svc/cluster/vault/SecretRows"
import { Vault } from "@svc/cluster/vault/Vault"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import * as AuditNotes from "../audit/AuditNotes.ts"
import * as RequestServices from "../http/RequestServices.ts"
import { RequestContext, unlessMade } from "../RequestContext.ts"

const locationOf = (name: string, identity: string | undefined) =>
  `/api/vault/secrets/${name}/value${identity === undefined ? "" : `?identity=${encodeURIComponent(identity)}`}`

export const layer = RequestServices.group(
  Api,
  "vault",
  Effect.fn(function* (handlers) {
    const vault = yield* Vault
    const noting = yield* AuditNotes.make
    /** An Identity Key only has its own namespace; other credentials use the Org's unless they name an Identity. */
    const namespace = Effect.map(Realm, ({ orgId, subject }): Namespace => ({
      org: orgId,
      identity: subject === null ? null : subject.id,
    }))

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* vault.list(yield* namespace, wholeList(query))
        return { secrets: entries, next_cursor }
      }),
      value: Effect.fnUntraced(function* ({ params, query }) {
        // The value and its audit record are one statement.
        const from = yield* namespace
        const { secret, tag } = yield* noting((note) =>
          note === undefined
            ? Effect.die("a Vault value is not shown without an audit record")
            : vault.value(from, params.name, query.version, note),
        )
        return HttpApiSchema.withHeaders({ body: secret, headers: { etag: tag } })
      }),
      put: Effect.fnUntraced(function* ({ params, query, headers, payload }) {
        const absent = headers["if-none-match"]
        if (absent !== undefined && absent.trim() !== "*") {
          return yield* new PreconditionFailed({ detail: "The only valid If-None-Match of a write is *." })
        }
        const to = yield* namespace
        const exchange = yield* RequestContext
        const condition = {
          ifTag: ifTag(headers["if-match"]),
          ifPresent: headers["if-match"] !== undefined,
          ifAbsent: absent !== undefined,
        }
        const { secret, created } = yield* noting((note) =>
          vault.put(to, params.name, payload, condition, note, exchange.commandId),
        )
        const etag = secretTag(secret.version, secret.created_at)
        return created
          ? HttpServerResponse.jsonUnsafe(secret, {
              status: 201,
              headers: { etag, location: locationOf(params.name, query.identity) },
            })
          : HttpApiSchema.withHeaders({ body: secret, headers: { etag } })
      }),
      remove: Effect.fnUntraced(function* ({ params, headers }) {
        const from = yield* namespace
        yield* unlessMade(noting((note) => vault.remove(from, params.name, ifTag(headers["if-match"]), note)))
      }),
      versions: Effect.fnUntraced(function* ({ params, query }) {
        const { entries, next_cursor } = yield* vault.versions(yield* namespace, params.name, query)
        return { versions: entries, next_cursor }
      }),
      restore: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const to = yield* namespace
        const exchange = yield* RequestContext
        const condition = ifTag(headers["if-match"])
        const secret = yield* noting((note) =>
          vault.restore(to, params.name, payload.version, condition, note, exchange.commandId),
        )
        return HttpApiSchema.withHeaders({
          body: secret,
          headers: { etag: secretTag(secret.version, secret.created_at) },
        })
      }),
    })
  }),
)
