/** The account: Terms, language, deletion and exports. */
import { Api } from "@svc/domain/Api"
import { Org } from "@svc/domain/account/Account"
import { Caller, Realm } from "@svc/domain/account/Authorization"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { ConfirmationMismatch, NotFound } from "@svc/domain/problems/Problem"
import { Versions } from "@svc/domain/Versions"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Exports } from "@svc/cluster/account/exports/Exports"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import { refusalOf } from "../http/Translations.ts"
import { notAsSeen, tagOfValue, unchanged } from "../EntityTags.ts"
import { commandId, RequestContext } from "../RequestContext.ts"
import * as ActorCalls from "./ActorCalls.ts"
import * as Downloads from "../http/Downloads.ts"

const tagOfOrg = tagOfValue(Org)
const asRead = unchanged(Org)
const withTag = (org: Org) => HttpApiSchema.withHeaders({ body: org, headers: { etag: tagOfOrg(org) } })

export const account = RequestServices.group(
  Api,
  "account",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const askOrg = yield* ActorCalls.ofOrg
    const versions = yield* Versions

    return handlers.handleAll({
      acceptTerms: Effect.fnUntraced(function* ({ payload }) {
        const { org } = yield* Caller
        return yield* accounts.terms(yield* accounts.acceptTerms(org, payload.version))
      }),
      read: () => Effect.map(Caller, ({ org }) => withTag(org)),
      update: Effect.fnUntraced(function* ({ payload, headers }) {
        const { org } = yield* Caller
        const condition = headers["if-match"]
        yield* asRead(condition, Effect.succeed(org))
        const { api_version } = payload
        const refusal = api_version === undefined ? undefined : refusalOf(versions, api_version, "/api_version")
        if (refusal !== undefined) return yield* refusal
        if (Object.keys(payload).length === 0 || (yield* RequestContext).resumed) return withTag(org)
        const changed = { ...org, ...payload }
        const isSet = yield* accounts.setSettings(org, payload, condition === undefined ? null : org)
        return isSet || condition === undefined ? withTag(changed) : yield* notAsSeen()
      }),
      remove: Effect.fnUntraced(function* ({ payload }) {
        const caller = yield* Caller
        const { org } = caller
        if (payload?.confirm?.toLowerCase() !== org.email) {
          return yield* new ConfirmationMismatch({
            detail: "`confirm` is not the account's own email address.",
            errors: [{ path: "/confirm", message: "the account's own email address" }],
          })
        }
        const { requested_at, identities } = yield* Effect.catchTag(
          askOrg(caller, (actor, by) => actor.Delete(undefined, by)),
          "not_found",
          Effect.die,
        )
        return HttpApiSchema.withHeaders({
          body: { status: "deleting" as const, requested_at, identities },
          // The error reports the progress: `account_deleting` first, `unauthenticated` when nothing is left.
          headers: { location: "/api/auth/whoami" },
        })
      }),
    })
  }),
)

export const exportsGroup = RequestServices.group(
  Api,
  "exports",
  Effect.fn(function* (handlers) {
    const exports = yield* Exports
    const whileValid = yield* Downloads.make
    const askOrg = yield* ActorCalls.ofOrg
    /** Exports that the credential could not have requested are neither listed nor downloadable. */
    const within = Effect.map(Realm, ({ orgId, subject }) => [orgId, subject?.id ?? null] as const)

    return handlers.handleAll({
      create: Effect.fnUntraced(function* () {
        const caller = yield* Caller
        const { orgId, subject } = yield* Realm
        const export_id = yield* commandId
        const about = { identity_id: subject?.id ?? null, handle: subject?.handle ?? null }
        yield* askOrg(caller, (actor, by) => actor.Export({ export_id, ...about }, by))
        const id = toPublic("exp_", export_id)
        const body = yield* exports.read(orgId, about.identity_id, id)
        return HttpApiSchema.withHeaders({ body, headers: { location: `/api/exports/${id}` } })
      }),
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* exports.list(...(yield* within), query)
        return { exports: entries, next_cursor }
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        return yield* exports.read(...(yield* within), params.id)
      }),
      archive: Effect.fnUntraced(function* ({ params }) {
        const { kind } = yield* Caller
        if (fromPublic("exp_", params.id) === undefined)
          return yield* new NotFound({ detail: "The export does not exist." })
        const body = yield* exports.archive(...(yield* within), params.id, kind === "session")
        return HttpServerResponse.stream(yield* whileValid(body), {
          contentType: "application/zip",
          headers: { "content-disposition": `attachment; filename="${params.id}.zip"` },
        })
      }),
    })
  }),
)
