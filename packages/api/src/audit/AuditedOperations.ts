/** What a call of an endpoint is to the audit log: which class of act, by what name, on what. Derived, not written down. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { ShowsSecret } from "@svc/domain/account/Policy"
import { Reveals, scopeOf } from "@svc/domain/account/EndpointScope"
import type { AuditClass, AuditOutcome, AuditSource, AuditTarget } from "@svc/domain/audit/AuditRecord"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { Cause, Context, Exit } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import type { Source } from "../RequestContext.ts"
import { isOfRequest, meaning } from "../problems/ProblemRendering.ts"

export interface Called {
  readonly endpoint: HttpApiEndpoint.Top
  readonly group: { readonly identifier: string }
}

export interface Plan {
  readonly class: AuditClass | "read"
  readonly action: string
  /** What it acts on, in one word. */
  readonly type: string
  readonly scope: string | null
  readonly makes: boolean
}

/** Secrets, or the way to them, though no answer has one; and the log itself. */
const alsoSecret = new Set([
  "vault.versions",
  "identities.rotate",
  "device_confirmation.approve",
  "audit.list",
  "audit.read",
  "audit.export",
])
/** Who may come in, and who no more. */
const comingIn = /^(?:session|grants)\.|^api_keys\.revoke$|^device_confirmation\./
const types: Readonly<Record<string, string>> = {
  vault: "secret",
  identities: "identity",
  sending: "message",
  device_confirmation: "device",
  mail_settings: "mail",
  org_mail: "mail",
}

const classOf = ({ method, annotations }: HttpApiEndpoint.Top, action: string): Plan["class"] => {
  if (Context.get(annotations, Reveals) || Context.get(annotations, ShowsSecret) || alsoSecret.has(action)) {
    return "secret"
  }
  if (method === "GET") return "read"
  return comingIn.test(action) ? "auth" : "change"
}

const plans = new WeakMap<HttpApiEndpoint.Top, Plan>()

export const planOf = ({ endpoint, group }: Called): Plan => {
  const known = plans.get(endpoint)
  if (known !== undefined) return known
  const action = `${group.identifier}.${endpoint.identifier}`
  const plan: Plan = {
    class: classOf(endpoint, action),
    action,
    type: types[group.identifier] ?? group.identifier.replace(/s$/, ""),
    scope: scopeOf(endpoint),
    makes: endpoint.method === "POST",
  }
  plans.set(endpoint, plan)
  return plan
}

export const sourceOf = (source: Source): AuditSource => ({
  address: source.address === "unknown" ? null : source.address,
  via: source.via,
  tool: source.tool,
  user_agent: source.userAgent,
})

type Params = Readonly<Record<string, string | undefined>>

/** Named by the path alone: what a body says is never recorded, nor a code that opens something. */
const targetOf = (plan: Plan, params: Params, identity: IdentityRef | null | undefined): AuditTarget | null => {
  const id = params["id"] ?? params["delivery_id"] ?? null
  const name = params["name"] ?? params["platform"] ?? params["address"] ?? null
  if (id !== null || name !== null) return { type: plan.type, id, name }
  const handle = identity?.handle ?? params["handle"]
  return handle === undefined ? null : { type: plan.type, id: identity?.id ?? null, name: handle }
}

export const actOf = (
  plan: Plan,
  caller: CallerInfo,
  identity: IdentityRef | null | undefined,
  params: Params,
  { source, requestId }: { readonly source: Source; readonly requestId: string },
): Act => ({
  org: caller.org.id,
  class: plan.class === "read" ? "auth" : plan.class,
  action: plan.action,
  actor: {
    kind: caller.kind,
    id: caller.credentialId,
    name: caller.keyName,
    client: caller.grant?.client ?? null,
  },
  identity: identity == null ? null : { id: identity.id, handle: identity.handle },
  target: targetOf(plan, params, identity),
  outcome: "allowed",
  code: null,
  scope: plan.scope,
  source: sourceOf(source),
  requestId,
})

/** The library wraps what a handler fails with until the middlewares have had their turn. */
const unwrapped = (failure: unknown): unknown =>
  typeof failure === "object" && failure !== null && "error" in failure ? failure.error : failure

const failed = { outcome: "failed", code: "internal" } as const

/** What came of a call, as its problem says it. */
export const outcomeOf = (
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>,
): { readonly outcome: AuditOutcome; readonly code: string | null } => {
  if (Exit.isSuccess(exit)) {
    const { status } = exit.value
    return { outcome: status >= 500 ? "failed" : status >= 400 ? "refused" : "allowed", code: null }
  }
  const found = exit.cause.reasons.map((reason) =>
    Cause.isFailReason(reason) ? reason.error : Cause.isDieReason(reason) ? reason.defect : undefined,
  )
  const failures = found.map(unwrapped)
  const problem = failures.map(meaning).find((one) => one !== undefined)
  if (problem !== undefined) return { outcome: problem.status >= 500 ? "failed" : "refused", code: problem.code }
  if (failures.some(isOfRequest)) return { outcome: "refused", code: "invalid_request" }
  return Cause.hasInterruptsOnly(exit.cause) ? { outcome: "failed", code: "unavailable" } : failed
}

/** Ids of what can be made; anything else at the end of a location is no id. */
const isId = /^(?:[a-z]{2,4}_[0-9a-hjkmnp-tv-z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** With the id of what the call made, where the answer says it. */
export const withMade = (
  plan: Plan,
  act: Act,
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>,
): Act => {
  if (!plan.makes || Exit.isFailure(exit)) return act
  const last = exit.value.headers["location"]?.split("?")[0]!.split("/").at(-1)
  if (last === undefined) return act
  if (isId.test(last)) return { ...act, target: { type: plan.type, id: last, name: act.target?.name ?? null } }
  return plan.action === "identities.create" ? { ...act, target: { type: plan.type, id: null, name: last } } : act
}
