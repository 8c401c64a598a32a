/** The audit entry of a signed-in user's action on a page outside the API. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { AuditClass } from "@svc/domain/audit/AuditRecord"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import type { RequestContextState } from "../RequestContext.ts"
import { sourceOf } from "./AuditedOperations.ts"

export const pageOperation = (
  caller: CallerInfo,
  { source, requestId }: Pick<RequestContextState, "source" | "requestId">,
  what: { readonly class: AuditClass; readonly action: string; readonly type: string },
): Act => ({
  org: caller.org.id,
  class: what.class,
  action: what.action,
  actor: { kind: caller.kind, id: caller.credentialId, name: caller.keyName, client: caller.grant?.client ?? null },
  identity: null,
  target: { type: what.type, id: null, name: null },
  outcome: "allowed",
  code: null,
  scope: null,
  source: sourceOf(source),
  requestId,
})
