import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { ForeignIdentity, PreconditionFailed } from "@svc/domain/problems/Problem"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { type Namespace, Vault } from "@svc/cluster/vault/Vault"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"

export const layer = HttpApiBuilder.group(
  Api,
  "vault",
  Effect.fn(function* (handlers) {
    const vault = yield* Vault
    const identities = yield* IdentityQueries

    /** An Identity Key has its own namespace only; for the others it is the Org's unless they name an Identity. */
    const namespaceOf = Effect.fnUntraced(function* (handle: string | undefined) {
      const { org, identity } = yield* Caller
      if (identity !== null) {
        if (handle !== undefined && canonical(handle) !== identity.canonical) {
          return yield* new ForeignIdentity({ detail: "An Identity Key may name only its own Identity." })
        }
        return { org: org.id, identity: identity.id } as Namespace
      }
      if (handle === undefined) return { org: org.id, identity: null } as Namespace
      return { org: org.id, identity: yield* identities.idOf(org.id, canonical(handle)) } as Namespace
    })

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        return { secrets: yield* vault.list(yield* namespaceOf(query.identity)) }
      }),
      value: Effect.fnUntraced(function* ({ params, query }) {
        const value = yield* vault.value(yield* namespaceOf(query.identity), params.name, query.version)
        return HttpApiSchema.withHeaders({ body: value, headers: { etag: tagOf(value.version) } })
      }),
      put: Effect.fnUntraced(function* ({ params, query, headers, payload }) {
        const absent = headers["if-none-match"]
        if (absent !== undefined && absent.trim() !== "*") {
          return yield* new PreconditionFailed({ detail: "If-None-Match of a write can only be *." })
        }
        const { secret, created } = yield* vault.put(yield* namespaceOf(query.identity), params.name, payload, {
          ifVersion: ifMatch(headers["if-match"]),
          ifPresent: headers["if-match"] !== undefined,
          ifAbsent: absent !== undefined,
        })
        const etag = tagOf(secret.version)
        return created
          ? HttpServerResponse.jsonUnsafe(secret, { status: 201, headers: { etag } })
          : HttpApiSchema.withHeaders({ body: secret, headers: { etag } })
      }),
      remove: Effect.fnUntraced(function* ({ params, query }) {
        yield* vault.remove(yield* namespaceOf(query.identity), params.name)
      }),
      versions: Effect.fnUntraced(function* ({ params, query }) {
        return { versions: yield* vault.versions(yield* namespaceOf(query.identity), params.name) }
      }),
      restore: Effect.fnUntraced(function* ({ params, query, headers, payload }) {
        const secret = yield* vault.restore(
          yield* namespaceOf(query.identity),
          params.name,
          payload.version,
          ifMatch(headers["if-match"]),
        )
        return HttpApiSchema.withHeaders({ body: secret, headers: { etag: tagOf(secret.version) } })
      }),
    })
  }),
)
