/** Sign-up and sign-in. */
import { Api } from "@svc/domain/Api"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import { keptByNobody, RequestContext } from "../RequestContext.ts"
import * as MagicLinks from "./MagicLinks.ts"
import { Audit } from "@svc/cluster/audit/Audit"
import { sourceOf } from "../audit/AuditedOperations.ts"

/** Consumes a magic link, over the API or a page: opens the session and audits the sign-in. */
export const magicLinkSignIn = Effect.gen(function* () {
  const accounts = yield* Accounts
  const audit = yield* Audit

  return Effect.fnUntraced(function* (token: string, userAgent: string | undefined) {
    const opened = yield* accounts.consume(token, userAgent)
    const { source, requestId } = yield* RequestContext
    yield* audit.record({
      org: opened.org.id,
      class: "auth",
      action: "sign_in.consumeMagicLink",
      actor: { kind: "session", id: opened.session.id, name: null, client: null },
      identity: null,
      target: { type: "session", id: opened.session.id, name: null },
      outcome: "allowed",
      code: null,
      scope: null,
      source: sourceOf(source),
      requestId,
    })
    return opened
  })
})

export const layer = RequestServices.group(
  Api,
  "sign_in",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const request = yield* MagicLinks.make
    const signIn = yield* magicLinkSignIn

    return handlers.handleAll({
      registration: () => Effect.succeed({ state: accounts.registration }),
      requestMagicLink: Effect.fnUntraced(function* (call) {
        yield* keptByNobody
        const body = yield* request(call.payload, call.request.headers["accept-language"])
        // The session that the link opens.
        return HttpApiSchema.withHeaders({ body, headers: { location: "/api/auth/session" } })
      }),
      consumeMagicLink: ({ payload, request }) =>
        Effect.andThen(keptByNobody, signIn(payload.token, request.headers["user-agent"])),
    })
  }),
)
