/** Consumes a magic link, over the API or a page: opens the session and audits the sign-in. */
import { Accounts } from "@svc/cluster/account/Accounts"
import { Audit } from "@svc/cluster/audit/Audit"
import { Effect } from "effect"
import { sourceOf } from "../audit/AuditedOperations.ts"
import { RequestContext } from "../RequestContext.ts"

export const make = Effect.gen(function* () {
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
