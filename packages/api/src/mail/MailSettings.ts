import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { AdminRequired, Conflict, NotFound } from "@svc/domain/problems/Problem"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import * as OwnIdentity from "../identity/OwnIdentity.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "mail_settings",
  Effect.fn(function* (handlers) {
    const own = yield* OwnIdentity.make
    const settings = yield* MailSettingsQueries
    const disclosure = (id: string) =>
      Effect.map(settings.disclosure(id), (found) =>
        HttpApiSchema.withHeaders({ body: found.disclosure, headers: { etag: tagOf(found.version) } }),
      )
    const status = (id: string) =>
      Effect.map(settings.status(id), (found) =>
        HttpApiSchema.withHeaders({ body: found.status, headers: { etag: tagOf(found.version) } }),
      )

    return handlers.handleAll({
      recipients: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* own(params.handle)
        return { allowed_recipients: yield* settings.recipients(id) }
      }),
      allow: Effect.fnUntraced(function* ({ params, payload }) {
        const { id, org_id, actor } = yield* own(params.handle)
        const address = payload.address.toLowerCase()
        yield* ask(actor.AllowRecipient({ org_id, address }))
        const found = yield* settings.recipient(id, address)
        return found ?? (yield* new NotFound({ detail: "The address was removed meanwhile." }))
      }),
      disallow: Effect.fnUntraced(function* ({ params }) {
        const { id, org_id, actor } = yield* own(params.handle)
        const address = params.address.toLowerCase()
        const present = yield* settings.recipient(id, address)
        if (present?.reason === "account_owner") {
          return yield* new Conflict({ detail: "The account's own verified address is always allowed." })
        }
        yield* ask(actor.DisallowRecipient({ org_id, address }))
      }),
      disclosure: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* own(params.handle)
        return yield* disclosure(id)
      }),
      setDisclosure: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const { id, org_id, actor } = yield* own(params.handle)
        yield* ask(actor.SetDisclosure({ org_id, text: payload.text, if_version: ifMatch(headers["if-match"]) }))
        return yield* disclosure(id)
      }),
      resetDisclosure: Effect.fnUntraced(function* ({ params }) {
        const { org_id, actor } = yield* own(params.handle)
        yield* Effect.catchTag(
          ask(actor.SetDisclosure({ org_id, text: null, if_version: null })),
          "precondition_failed",
          Effect.die,
        )
      }),
      status: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* own(params.handle)
        return yield* status(id)
      }),
      switch: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const { kind } = yield* Caller
        const { id, org_id, actor } = yield* own(params.handle)
        if (payload.outgoing === "active" && kind === "identity_key") {
          return yield* new AdminRequired({ detail: "An Identity Key may stop outgoing mail, not start it again." })
        }
        yield* ask(
          actor.SwitchMail(
            { org_id, patch: payload, if_version: ifMatch(headers["if-match"]) },
            onBehalfOf({ kind, credentialId: null, requestId: null }),
          ),
        )
        return yield* status(id)
      }),
    })
  }),
)
