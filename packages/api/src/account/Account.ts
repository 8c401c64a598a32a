/** Terms, deletion and exports of an account. */
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { ConfirmationMismatch, ForeignIdentity, NotFound } from "@svc/domain/problems/Problem"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Exports } from "@svc/cluster/account/exports/Exports"
import { Orgs } from "@svc/cluster/account/Orgs"
import { ask } from "@svc/cluster/actor/Ask"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { commandId } from "../Exchange.ts"

export const account = HttpApiBuilder.group(
  Api,
  "account",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const orgs = yield* Orgs

    return handlers.handleAll({
      acceptTerms: Effect.fnUntraced(function* ({ payload }) {
        const { org } = yield* Caller
        return yield* accounts.terms(yield* accounts.acceptTerms(org, payload.version))
      }),
      remove: Effect.fnUntraced(function* ({ payload }) {
        const { org } = yield* Caller
        if (payload?.confirm?.toLowerCase() !== org.email) {
          return yield* new ConfirmationMismatch({
            detail: "`confirm` is not the account's own email address.",
            errors: [{ path: "/confirm", message: "the account's own email address" }],
          })
        }
        const { requested_at, identities } = yield* Effect.catchTag(
          ask(orgs.of(org.id).Delete()),
          "not_found",
          Effect.die,
        )
        return { status: "deleting" as const, requested_at, identities }
      }),
    })
  }),
)

export const exportsGroup = HttpApiBuilder.group(
  Api,
  "exports",
  Effect.fn(function* (handlers) {
    const exports = yield* Exports
    const orgs = yield* Orgs
    const identities = yield* IdentityQueries
    const scope = Effect.map(Caller, ({ org, identity }) => [org.id, identity?.id ?? null] as const)

    return handlers.handleAll({
      create: Effect.fnUntraced(function* ({ payload }) {
        const { org, identity } = yield* Caller
        const wanted = payload?.identity
        if (identity !== null && wanted !== undefined && canonical(wanted) !== identity.canonical) {
          return yield* new ForeignIdentity({ detail: "An Identity Key may export only its own Identity." })
        }
        const subject =
          identity ?? (wanted === undefined ? undefined : yield* identities.read(org.id, canonical(wanted)))
        const export_id = yield* commandId
        yield* ask(
          orgs.of(org.id).Export({ export_id, identity_id: subject?.id ?? null, handle: subject?.handle ?? null }),
        )
        return yield* exports.read(org.id, identity?.id ?? null, toPublic("exp_", export_id))
      }),
      list: Effect.fnUntraced(function* () {
        return { exports: yield* exports.list(...(yield* scope)) }
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        return yield* exports.read(...(yield* scope), params.id)
      }),
      archive: Effect.fnUntraced(function* ({ params }) {
        const { kind } = yield* Caller
        if (fromPublic("exp_", params.id) === undefined)
          return yield* new NotFound({ detail: "There is no such export." })
        const body = yield* exports.archive(...(yield* scope), params.id, kind === "session")
        return HttpServerResponse.stream(body, {
          contentType: "application/zip",
          headers: { "content-disposition": `attachment; filename="${params.id}.zip"` },
        })
      }),
    })
  }),
)
