import { Api } from "@svc/domain/Api"
import { Subject } from "@svc/domain/account/Authorization"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { keptAs } from "@svc/domain/mail/AllowedAddress"
import type { MailPatch } from "@svc/domain/mail/MailSettings"
import { wholeList } from "@svc/domain/Paging"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { Conflict, InvalidRequest, NotFound } from "@svc/domain/problems/Problem"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { untagged } from "../EntityTags.ts"

/** An empty patch is an error, and a reason requires the switch. */
const judgePatch = ({ outgoing, approval, tag_folders, reason }: MailPatch) =>
  (outgoing === undefined && approval === undefined && tag_folders === undefined) ||
  (outgoing === undefined && reason !== undefined)
    ? Effect.fail(
        new InvalidRequest({
          detail: "The patch must contain `outgoing`, `approval` or `tag_folders`; a reason requires `outgoing`.",
          errors: [{ path: "/outgoing", message: "Expected active or stopped" }],
        }),
      )
    : Effect.void

/**
 * The domain of a full address is normalized before the search. A shorter text may end within a label, which has no A-label
 * yet.
 */
const beginningOf = (typed = "") => (/^[ -~]*$/.test(typed) ? typed : (keptAs(typed) ?? typed))

export const layer = RequestServices.group(
  Api,
  "mail_settings",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const settings = yield* MailSettingsQueries
    const disclosure = (id: IdentityId) =>
      Effect.map(settings.disclosure(id), (found) =>
        HttpApiSchema.withHeaders({ body: found.disclosure, headers: { etag: tagOf(found.version) } }),
      )
    const status = (id: IdentityId) =>
      Effect.map(settings.status(id), (found) =>
        HttpApiSchema.withHeaders({ body: found.status, headers: { etag: tagOf(found.version) } }),
      )

    return handlers.handleAll({
      recipients: Effect.fnUntraced(function* ({ query }) {
        const { id } = yield* Subject
        const { entries, next_cursor } = yield* settings.recipients(id, wholeList(query), beginningOf(query.address))
        return { allowed_recipients: entries, next_cursor }
      }),
      allow: Effect.fnUntraced(function* ({ params, payload }) {
        const subject = yield* Subject
        const { id, orgId } = subject
        const { address } = payload
        yield* askIdentity(subject, (actor, by) => actor.AllowRecipient({ org_id: orgId, address }, by))
        const found = yield* settings.recipient(id, address)
        if (found === undefined) return yield* new NotFound({ detail: "The address was removed meanwhile." })
        const location = `/api/identities/${encodeURIComponent(params.handle)}/allowed-recipients/${encodeURIComponent(address)}`
        return HttpApiSchema.withHeaders({ body: found, headers: { location } })
      }),
      disallow: Effect.fnUntraced(function* ({ params, headers }) {
        yield* untagged(headers["if-match"])
        const subject = yield* Subject
        const { id, orgId } = subject
        const { address } = params
        const present = yield* settings.recipient(id, address)
        if (present?.reason === "account_owner") {
          return yield* new Conflict({ detail: "The account's own verified address is always allowed." })
        }
        yield* askIdentity(subject, (actor, by) => actor.DisallowRecipient({ org_id: orgId, address }, by))
      }),
      lift: Effect.fnUntraced(function* ({ params, headers }) {
        yield* untagged(headers["if-match"])
        const subject = yield* Subject
        const { orgId } = subject
        const { address } = params
        yield* askIdentity(subject, (actor, by) => actor.LiftSuppression({ org_id: orgId, address }, by))
      }),
      disclosure: () => Effect.flatMap(Subject, ({ id }) => disclosure(id)),
      setDisclosure: Effect.fnUntraced(function* ({ headers, payload: { text } }) {
        const subject = yield* Subject
        const { id, orgId } = subject
        const if_version = ifMatch(headers["if-match"])
        yield* unlessMade(
          askIdentity(subject, (actor, by) => actor.SetDisclosure({ org_id: orgId, text, if_version }, by)),
        )
        return yield* disclosure(id)
      }),
      resetDisclosure: Effect.fnUntraced(function* ({ headers }) {
        const subject = yield* Subject
        const { orgId } = subject
        const if_version = ifMatch(headers["if-match"])
        yield* unlessMade(
          askIdentity(subject, (actor, by) => actor.SetDisclosure({ org_id: orgId, text: null, if_version }, by)),
        )
      }),
      status: () => Effect.flatMap(Subject, ({ id }) => status(id)),
      switch: Effect.fnUntraced(function* ({ headers, payload }) {
        const subject = yield* Subject
        const { id, orgId } = subject
        yield* judgePatch(payload)
        const patch = { org_id: orgId, patch: payload, if_version: ifMatch(headers["if-match"]) }
        yield* unlessMade(askIdentity(subject, (actor, by) => actor.SwitchMail(patch, by)))
        return yield* status(id)
      }),
    })
  }),
)
