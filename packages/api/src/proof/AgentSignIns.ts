/** Signs an Identity in at sites: the agent posts the authorization request that a site sent to `/auth/authorize`. */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Caller, Subject } from "@svc/domain/account/Authorization"
import { makeUuidV7 } from "@svc/domain/Ids"
import { hostOf } from "@svc/domain/oauth/Redirect"
import { ScopeExceeds, SignInInvalid } from "@svc/domain/problems/Problem"
import { AgentSignIn } from "@svc/domain/proof/SignIn"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { SignIns } from "@svc/cluster/proof/SignIns"
import { Effect } from "effect"
import * as AuditNotes from "../audit/AuditNotes.ts"
import { unchanged } from "../EntityTags.ts"
import { RequestContext, unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import { clientIdOf, judgeSignIn, queryOf } from "../oauth/AuthorizationRequest.ts"
import { mayChangeLists, onRecord, recordedAs } from "./ProofRecords.ts"

const asRead = unchanged(AgentSignIn)

export const layer = RequestServices.group(
  Api,
  "agent_sign_ins",
  Effect.fn(function* (handlers) {
    const clients = yield* OAuthClients
    const signIns = yield* SignIns
    const noting = yield* AuditNotes.make
    const book = yield* Addresses

    const invalid = (detail: string) => new SignInInvalid({ detail })

    /** Decides on a sign-in that awaits approval. */
    const decide = (isApproved: boolean) =>
      Effect.fnUntraced(function* ({ params }: { readonly params: { readonly id: string } }) {
        const subject = yield* Subject
        const found = yield* signIns.read(subject.id, params.id)
        if ((yield* RequestContext).resumed) return found
        yield* recordedAs("sign_in", params.id, found.site)
        return yield* noting((note) => signIns.decide(subject, params.id, isApproved, subject.by, note))
      })

    return handlers.handleAll({
      create: Effect.fnUntraced(
        function* ({ payload }) {
          const subject = yield* Subject
          const caller = yield* Caller
          if (caller.networks !== null) {
            return yield* new ScopeExceeds({
              detail: "A sign-in is valid in every network, so a key that is limited to networks cannot sign in.",
            })
          }
          const query = queryOf(book, payload.authorization_url)
          if (query === undefined) {
            return yield* invalid(`The authorization_url must begin with ${book.baseUrl}/auth/authorize?.`)
          }
          const clientId = clientIdOf(query)
          const client = clientId === undefined ? undefined : yield* clients.read(clientId)
          if (client === undefined) return yield* invalid("The site is not registered: its client_id is unknown.")
          const judged = judgeSignIn(book, client, query)
          if (judged._tag === "Unusable") {
            return yield* invalid("The redirect_uri is not one of the site's. Nothing was sent to it.")
          }
          if (judged._tag === "Refused") return yield* invalid(judged.description)
          const { wanted } = judged
          const id = yield* makeUuidV7
          yield* recordedAs("sign_in", id, hostOf(wanted.redirect))
          const request = { id, client, isFree: mayChangeLists(caller), ...wanted }
          const { code, signIn } = yield* onRecord(noting, (note) =>
            signIns.create(subject, caller, request, subject.by, note),
          )
          return { ...signIn, redirect_url: code === undefined ? null : wanted.back({ code }) }
        },
        Effect.catchTag("DocumentRefused", ({ message }) => Effect.fail(invalid(message))),
      ),
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* signIns.list((yield* Subject).id, query)
        return { sign_ins: entries, next_cursor }
      }),
      read: ({ params }) => Effect.flatMap(Subject, ({ id }) => signIns.read(id, params.id)),
      approve: decide(true),
      refuse: decide(false),
      end: Effect.fnUntraced(function* ({ params, headers }) {
        const subject = yield* Subject
        yield* asRead(headers["if-match"], signIns.read(subject.id, params.id))
        const { site } = yield* signIns.read(subject.id, params.id)
        yield* recordedAs("sign_in", params.id, site)
        yield* unlessMade(noting((note) => signIns.end(subject, params.id, note)))
      }),
    })
  }),
)
