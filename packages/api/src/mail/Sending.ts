import { Api } from "@svc/domain/Api"
import { Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { ifMatch, matches, tagOf } from "@svc/domain/Precondition"
import type { NewMail, Sent } from "@svc/domain/mail/Sending"
import { ContentChanged, NotFound } from "@svc/domain/problems/Problem"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import { differenceInTurns } from "@svc/cluster/mail/sending/PartsDifference"
import { SendingQueries } from "@svc/cluster/mail/sending/SendingQueries"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as AuditNotes from "../audit/AuditNotes.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { notAsSeen } from "../EntityTags.ts"
import { commandId, RequestContext, unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"

export const layer = RequestServices.group(
  Api,
  "sending",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const sending = yield* Sending
    const noting = yield* AuditNotes.make
    const queries = yield* SendingQueries
    const messages = yield* MessageQueries
    const drafts = yield* Drafts

    const place = (handle: string, kind: "messages" | "drafts", id: string) =>
      `/api/identities/${encodeURIComponent(handle)}/${kind}/${id}`
    const uuidOf = (id: string) => {
      const uuid = fromPublic("msg_", id)
      return uuid === undefined
        ? Effect.fail(new NotFound({ detail: "The message does not exist." }))
        : Effect.succeed(uuid)
    }
    const draftOf = (id: IdentityId, draft: string) =>
      Effect.map(drafts.read(id, draft), (found) => ({ body: found.draft, headers: { etag: tagOf(found.version) } }))

    const responseOf = (handle: string, sent: Sent) =>
      HttpApiSchema.withHeaders({ body: sent, headers: { location: place(handle, "messages", sent.id) } })
    const accepted = (handle: string, subject: SubjectInfo, id: string, mail: NewMail, draftVersion: number | null) =>
      Effect.map(
        noting(
          ActorCalls.storedByActor((note) => sending.accept({ subject, id, mail, draftVersion, note })),
          toPublic("msg_", id),
        ),
        (sent) => responseOf(handle, sent),
      )
    /** Returns the response of an acceptance by an interrupted attempt of the same request. */
    const acceptedBefore = Effect.fnUntraced(function* (handle: string, identity: IdentityId, id: string) {
      const { message } = yield* messages.read(identity, id)
      const { approval, delivery } = yield* queries.outbound(identity, id)
      const status = approval === null ? "queued" : "awaiting_approval"
      const recipients = delivery.map(({ address }) => ({ address, status }) as const)
      return responseOf(handle, { id, message_id: message.message_id!, status, recipients })
    })

    /** Decides on the content with this hash; undefined only for a rejection without a hash. */
    const decide = Effect.fnUntraced(function* (
      id: string,
      decision: { readonly approve: boolean; readonly reason: string | null; readonly hash: string | undefined },
    ) {
      const subject = yield* Subject
      const { orgId } = subject
      if ((yield* RequestContext).resumed) return yield* queries.outbound(subject.id, id)
      const message_id = yield* uuidOf(id)
      const { content_sha256 } = yield* queries.waiting(subject.id, id)
      if (decision.hash !== undefined && decision.hash !== content_sha256) {
        return yield* new ContentChanged({
          detail: `The decision is about other content than the message has. Read GET /api/identities/${subject.handle}/approvals/${id} and decide with its content_sha256.`,
        })
      }
      const { approve, reason } = decision
      const command = { org_id: orgId, message_id, approve, reason, content_sha256 }
      yield* askIdentity(subject, (actor, by) => actor.DecideMail(command, by))
      return yield* queries.outbound(subject.id, id)
    })

    return handlers.handleAll({
      send: Effect.fnUntraced(function* ({ params, payload }) {
        return yield* accepted(params.handle, yield* Subject, yield* commandId, payload, null)
      }),

      drafts: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* drafts.list((yield* Subject).id, query)
        return { drafts: entries, next_cursor }
      }),
      draft: Effect.fnUntraced(function* ({ params, payload }) {
        const { id } = yield* Subject
        const uuid = yield* commandId
        yield* noting((note) => drafts.create(id, uuid, payload, note), toPublic("msg_", uuid))
        const { body, headers } = yield* draftOf(id, toPublic("msg_", uuid))
        return HttpApiSchema.withHeaders({
          body,
          headers: { ...headers, location: place(params.handle, "drafts", body.id) },
        })
      }),
      readDraft: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        return HttpApiSchema.withHeaders(yield* draftOf(id, params.id))
      }),
      replaceDraft: Effect.fnUntraced(function* ({ params, payload, headers }) {
        const { id } = yield* Subject
        yield* unlessMade(noting((note) => drafts.replace(id, params.id, payload, ifMatch(headers["if-match"]), note)))
        return HttpApiSchema.withHeaders(yield* draftOf(id, params.id))
      }),
      removeDraft: Effect.fnUntraced(function* ({ params, headers }) {
        const { id } = yield* Subject
        yield* unlessMade(noting((note) => drafts.remove(id, params.id, ifMatch(headers["if-match"]), note)))
      }),
      sendDraft: Effect.fnUntraced(function* ({ params, headers }) {
        const subject = yield* Subject
        const uuid = yield* uuidOf(params.id)
        if ((yield* RequestContext).resumed) return yield* acceptedBefore(params.handle, subject.id, params.id)
        const condition = headers["if-match"]
        const { mail, version } = yield* Effect.catchTag(drafts.read(subject.id, params.id), "not_found", (missing) =>
          Effect.fail(condition === undefined ? missing : notAsSeen()),
        )
        // The store compares the draft's version, so a draft that changes from here on is not sent.
        if (!matches(ifMatch(condition), version)) return yield* notAsSeen()
        return yield* accepted(params.handle, subject, uuid, mail, version)
      }),

      approvals: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* queries.approvals((yield* Subject).id, query)
        return { approvals: entries, next_cursor }
      }),
      approval: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        const waiting = yield* queries.waiting(id, params.id)
        const { message } = yield* messages.read(id, params.id)
        return { ...message, ...waiting, differences: yield* differenceInTurns(message.html, message.text) }
      }),
      approve: ({ params, payload }) =>
        decide(params.id, { approve: true, reason: null, hash: payload.content_sha256 }),
      refuse: ({ params, payload }) =>
        decide(params.id, { approve: false, reason: payload?.reason ?? null, hash: payload?.content_sha256 }).pipe(
          // A message that cannot be sent can still be rejected.
          Effect.catchTags({ mail_paused: Effect.die, recipient_not_allowed: Effect.die }),
        ),
    })
  }),
)
