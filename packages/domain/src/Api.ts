/** The whole HTTP API. Clients, the OpenAPI document and the handlers are derived from it. */
import { HttpApi, OpenApi } from "effect/http-api"
import type { Unjudged } from "./account/Policy.ts"
import { ApiKeyApi, SessionApi, SignInApi } from "./account/AccountApi.ts"
import { DeviceConfirmationApi, DeviceLoginApi } from "./account/DeviceApi.ts"
import { ExportApi, OrgApi } from "./account/OrgApi.ts"
import { AuditApi } from "./audit/AuditApi.ts"
import { CardApi, ProfileApi } from "./card/CardApi.ts"
import { ConnectorApi } from "./connectors/ConnectorApi.ts"
import { EventApi } from "./events/EventApi.ts"
import { HealthApi } from "./health/HealthApi.ts"
import { HandleApi, IdentityApi } from "./identity/IdentityApi.ts"
import { LimitApi } from "./limits/LimitApi.ts"
import { MessageApi } from "./mail/MessageApi.ts"
import { ThreadApi } from "./mail/ThreadApi.ts"
import { MailSettingsApi, OrgMailApi } from "./mail/MailSettingsApi.ts"
import { SendingApi } from "./mail/SendingApi.ts"
import { GrantApi } from "./oauth/GrantApi.ts"
import { ProofApi } from "./proof/ProofApi.ts"
import { AgentSignInApi } from "./proof/SignInApi.ts"
import { PublicApi } from "./public/PublicApi.ts"
import { ProblemRendering } from "./problems/ProblemRendering.ts"
import { TunnelApi } from "./tunnel/TunnelApi.ts"
import { OverviewApi } from "./usage/OverviewApi.ts"
import { UsageApi } from "./usage/UsageApi.ts"
import { VaultApi } from "./vault/VaultApi.ts"
import { apiVersion } from "./Version.ts"
import { WebhookApi } from "./webhooks/WebhookApi.ts"

const strict = { onExcessProperty: "error" } as const

export class Api extends HttpApi.make("agent_identity")
  .add(HealthApi)
  .add(SignInApi)
  .add(SessionApi)
  .add(OrgApi)
  .add(AuditApi)
  .add(DeviceLoginApi)
  .add(DeviceConfirmationApi)
  .add(ExportApi)
  .add(ApiKeyApi)
  .add(HandleApi)
  .add(IdentityApi)
  .add(CardApi)
  .add(ProofApi)
  .add(AgentSignInApi)
  .add(ProfileApi)
  .add(MessageApi)
  .add(ThreadApi)
  .add(SendingApi)
  .add(MailSettingsApi)
  .add(OrgMailApi)
  .add(WebhookApi)
  .add(EventApi)
  .add(TunnelApi)
  .add(ConnectorApi)
  .add(VaultApi)
  .add(LimitApi)
  .add(UsageApi)
  .add(OverviewApi)
  .add(GrantApi)
  .add(PublicApi)
  .middleware(ProblemRendering)
  // Unknown members are rejected, except in headers, which always contain unknown fields. Responses are not strict,
  // since strict options would prevent compiled encoders. Validation stops at the first violation, so that an invalid
  // body costs no more than a valid one; the other violations of a small body are collected when the problem is
  // rendered.
  .annotate(HttpApi.ParamsParseOptions, strict)
  .annotate(HttpApi.QueryParseOptions, strict)
  .annotate(HttpApi.PayloadParseOptions, strict)
  .annotateMerge(OpenApi.annotations({ title: "Agent Identity Service", version: apiVersion })) {}

/** Fails to compile if an endpoint lacks a policy. */
export const unjudged: ReadonlyArray<never> = [] as ReadonlyArray<Unjudged<typeof Api.groups>>
