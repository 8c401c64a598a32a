/** Audits the authorization of apps before the response is sent: consent, token use, and suspected token theft. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { AuditActor, AuditOutcome } from "@svc/domain/audit/AuditRecord"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import type { KnownSignIn } from "@svc/cluster/proof/SignInTokens"
import { Effect } from "effect"
import { sourceOf } from "../audit/AuditedOperations.ts"
import { RequestContext } from "../RequestContext.ts"

interface Came {
  readonly org: string
  /** `oauth.consent`, `oauth.token`, `oauth.refresh` or `oauth.revoke`. */
  readonly action: string
  readonly grant: { readonly id: string | null; readonly client: string | null }
  readonly outcome?: AuditOutcome
  readonly code?: string
}

export const make = Effect.map(Effect.service(Audit), (audit) => {
  const record = ({ org, action, grant, outcome = "allowed", code }: Came, actor: AuditActor) =>
    Effect.flatMap(RequestContext, ({ source, requestId }) =>
      audit.record({
        org,
        class: "auth",
        action,
        actor,
        identity: null,
        target: { type: "grant", id: grant.id, name: grant.client },
        outcome,
        code: code ?? null,
        scope: null,
        source: sourceOf(source),
        requestId,
      }),
    )

  return {
    /** Records an action of the account holder on the consent page. */
    byHolder: (caller: CallerInfo, came: Omit<Came, "org">) =>
      record({ ...came, org: caller.org.id }, { kind: caller.kind, id: caller.credentialId, name: null, client: null }),
    /** Returns the record of a site's use of a code, to store in the statement that hands out the tokens. */
    ofSite: (signIn: KnownSignIn, code: string | null = null): Effect.Effect<Act, never, never> =>
      Effect.map(RequestContext, ({ source, requestId }): Act => ({
        org: signIn.subject.orgId,
        class: "auth",
        action: "oauth.sign_in",
        actor: {
          kind: signIn.credential.kind,
          id: signIn.credential.credentialId,
          name: null,
          client: signIn.clientName,
        },
        identity: { id: signIn.subject.id, handle: signIn.subject.handle },
        target: { type: "sign_in", id: signIn.id, name: signIn.site },
        outcome: code === null ? "allowed" : "refused",
        code,
        scope: null,
        source: sourceOf(source),
        requestId,
      })),
    /** Records an action of the app, with a code or a token of its Grant. */
    byApp: (came: Came) => record(came, { kind: "grant", id: came.grant.id, name: null, client: came.grant.client }),
  }
})
