/**
 * Audits accepted and refused links. An agent on a bad network reconnects repeatedly, so the links of one credential
 * are counted per minute, like refusals.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { AuditSource } from "@svc/domain/audit/AuditRecord"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { Effect, type Redacted } from "effect"

/** Address of an agent and the client name that it sent. */
interface From {
  readonly address: string
  readonly client: string
}

const action = "tunnel.link"

const sourceOf = ({ address, client }: From): AuditSource => ({
  address,
  via: "tunnel",
  tool: null,
  user_agent: client,
})

const actOf = (caller: CallerInfo, from: From, identity: Act["identity"]): Act => ({
  org: caller.org.id,
  class: "auth",
  action,
  actor: {
    kind: caller.kind,
    id: caller.credentialId,
    name: caller.keyName,
    client: caller.grant?.client ?? null,
  },
  identity,
  target: identity && { type: "tunnel", id: identity.id, name: identity.handle },
  outcome: "allowed",
  code: null,
  scope: "tunnel:write",
  source: sourceOf(from),
  requestId: null,
})

export const make = Effect.gen(function* () {
  const audit = yield* Audit
  const strangers = yield* RefusedCredentials

  return {
    /** Records an accepted link. */
    linked: (caller: CallerInfo, from: From, identity: { readonly id: string; readonly handle: string }) =>
      audit.record(actOf(caller, from, identity)),
    /** Records the refusal of an authenticated caller; `name` is the requested name. */
    refused: (caller: CallerInfo, from: From, name: string, code: string) =>
      audit.record({
        ...actOf(caller, from, null),
        target: { type: "tunnel", id: null, name },
        outcome: "refused",
        code,
      }),
    /** Records a rejected credential if it ever belonged to an Org. */
    credentialRejected: (credential: Redacted.Redacted<string>, from: From, code: string) =>
      code === "unavailable"
        ? Effect.void
        : strangers.turnedAway(credential, { action, code, source: sourceOf(from), requestId: null }),
  }
})
