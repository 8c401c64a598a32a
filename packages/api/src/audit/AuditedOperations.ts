/** Derives the audit record of a call from its endpoint: class, action and target. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { ShowsSecret } from "@svc/domain/account/Policy"
import { Reveals, scopeOf } from "@svc/domain/account/EndpointScope"
import type { AuditClass, AuditOutcome, AuditSource, AuditTarget } from "@svc/domain/audit/AuditRecord"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { Cause, Context, Exit } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import type { Source, RequestContextState } from "../RequestContext.ts"
import { isOfRequest, meaning } from "../problems/ProblemRendering.ts"

export interface Called {
  readonly endpoint: HttpApiEndpoint.Top
  readonly group: { readonly identifier: string }
}

interface Plan {
  readonly class: AuditClass | "read"
  readonly action: string
  /** The kind of resource that the call acts on. */
  readonly type: string
  readonly scope: string | null
  readonly makes: boolean
}

/** Endpoints that give access to secrets or to the log, although their response contains no secret. */
const alsoSecret = new Set([
  "vault.versions",
  "identities.rotate",
  "device_confirmation.approve",
  "audit.list",
  "audit.read",
  "audit.export",
])
/** Operations that grant or revoke access. */
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

/** Only path parameters are recorded, never bodies or codes. */
const targetOf = (plan: Plan, params: Params, identity: IdentityRef | null | undefined): AuditTarget | null => {
  const id = params["id"] ?? null
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

/** The library wraps failures of a handler until all middleware has run. */
const unwrapped = (failure: unknown): unknown =>
  typeof failure === "object" && failure !== null && "error" in failure ? failure.error : failure

const failed = { outcome: "failed", code: "internal" } as const

/** Returns the outcome of a call from its problem. */
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

/** Ids of resources that can be created; other trailing path segments are not ids. */
const isId = /^(?:[a-z]{2,4}_[0-9a-hjkmnp-tv-z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Adds the created resource: its id, or the Handle of an Identity. */
export const naming = ({ type }: Plan, act: Act, made: string): Act => ({
  ...act,
  target: isId.test(made) ? { type, id: made, name: act.target?.name ?? null } : { type, id: null, name: made },
})

/** Adds the created resource from the response's location. */
export const withMade = (
  plan: Plan,
  act: Act,
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>,
): Act => {
  if (!plan.makes || Exit.isFailure(exit)) return act
  const last = exit.value.headers["location"]?.split("?")[0]!.split("/").at(-1)
  return last !== undefined && (isId.test(last) || plan.action === "identities.create") ? naming(plan, act, last) : act
}

/** Returns the audit record of a signed-in user's action on a page outside the API. */
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
