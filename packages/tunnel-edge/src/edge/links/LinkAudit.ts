/**
 * Who comes in by a link, and who is refused one, on record. An agent dials again and again while its network is bad, so
 * the links of one credential are counted by the minute, as refusals are.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { AuditSource } from "@svc/domain/audit/AuditRecord"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { Effect, type Redacted } from "effect"

/** Where an agent dials from, and what it calls itself. */
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
    /** A link is about to be its credential's. */
    linked: (caller: CallerInfo, from: From, identity: { readonly id: string; readonly handle: string }) =>
      audit.record(actOf(caller, from, identity)),
    /** A known caller is refused; `name` is what it asked for. */
    refused: (caller: CallerInfo, from: From, name: string, code: string) =>
      audit.record({
        ...actOf(caller, from, null),
        target: { type: "tunnel", id: null, name },
        outcome: "refused",
        code,
      }),
    /** A credential was refused: whose it was is recorded, if it ever was somebody's. */
    credentialRejected: (credential: Redacted.Redacted<string>, from: From, code: string) =>
      code === "unavailable"
        ? Effect.void
        : strangers.turnedAway(credential, { action, code, source: sourceOf(from), requestId: null }),
  }
})
