/**
 * Audits submitted mail like a send request: who submitted it, from which address, as which message, and the outcome.
 */
import type { SubjectInfo } from "@svc/domain/account/Authorization"
import type { Problem } from "@svc/domain/problems/Problem"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { Effect } from "effect"
import { submissionPurpose } from "../imap/server/Logins.ts"

export const make = Effect.map(Effect.service(Audit), (audit) => {
  const actOf = ({ id, handle, orgId, by }: SubjectInfo, address: string, message: string | null): Act => ({
    org: orgId,
    class: "change",
    action: "submission.send",
    actor: {
      kind: by.credentialId === null ? "imap_password" : "identity_key",
      id: by.credentialId,
      name: null,
      client: null,
    },
    identity: { id, handle },
    target: { type: "message", id: message, name: null },
    outcome: "allowed",
    code: null,
    scope: submissionPurpose.scope,
    source: { address, via: submissionPurpose.via, tool: null, user_agent: null },
    requestId: null,
  })

  return {
    accepted: (subject: SubjectInfo, address: string, message: string) =>
      audit.record(actOf(subject, address, message)),
    refused: (subject: SubjectInfo, address: string, { code, status }: Problem) =>
      audit.record({ ...actOf(subject, address, null), outcome: status >= 500 ? "failed" : "refused", code }),
  }
})
