/** Role `api`: the HTTP API, MCP and the public pages. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { announced, ShutdownSignal } from "@svc/api/ShutdownSignal"
import { StreamLimits } from "@svc/api/events/StreamLimits"
import * as Http from "@svc/api/Http"
import * as RequestMetrics from "@svc/api/RequestMetrics"
import * as Connections from "@svc/api/http/Connections"
import * as MalformedRequests from "@svc/api/http/MalformedRequests"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { AuditQueries } from "@svc/cluster/audit/AuditQueries"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Devices } from "@svc/cluster/account/Devices"
import { Exports } from "@svc/cluster/account/exports/Exports"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { EventTails } from "@svc/cluster/events/EventTails"
import { Orgs } from "@svc/cluster/account/Orgs"
import { HandleRules } from "@svc/cluster/handles/HandleRules"
import { IdempotencyRecords } from "@svc/cluster/idempotency/IdempotencyRecords"
import { Identities } from "@svc/cluster/actor/Identities"
import { LimitUses } from "@svc/cluster/limits/LimitUses"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Grants } from "@svc/cluster/oauth/Grants"
import { GrantTokens } from "@svc/cluster/oauth/GrantTokens"
import { Verifications } from "@svc/cluster/proof/Verifications"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { PageViews } from "@svc/cluster/public/PageViews"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { Timing } from "@svc/cluster/Timing"
import * as Attachments from "@svc/mail-gateway/mail/Attachments"
import * as Composition from "@svc/mail-gateway/mail/composing/Composition"
import { Layer, Option } from "effect"
import * as Tracing from "../ops/Tracing.ts"
import type { Settings } from "../Settings.ts"
import type { Outgoing } from "./Outgoing.ts"
import * as Stores from "./Stores.ts"

/** Sites whose page views are counted. */
const hostsOf = (settings: Settings) =>
  new Set([settings.baseUrl, settings.profileBase].map((url) => new URL(url).hostname))

export const layer = (settings: Settings, outgoing: Outgoing) =>
  announced.pipe(
    Layer.provide(
      Http.layer(
        {
          contactTo: settings.contactTo,
          trustedProxies: settings.trustedProxies,
          terms: { version: settings.tosVersion, url: settings.tosUrl },
          mailPolicy: { mode: settings.mtaSts, servers: settings.mailServers },
        },
        NodeHttpServer.layerServer(
          () =>
            Tracing.guarded(
              MalformedRequests.answered(
                RequestMetrics.watched(Connections.bounded(createServer({ requireHostHeader: false }))),
                settings,
              ),
              settings.trustedProxies.networks,
              settings.tracedShare,
            ),
          { host: settings.host, port: settings.httpPort, gracefulShutdownTimeout: Timing.drain },
        ),
      ),
    ),
    Layer.provide([
      HandleRules.layer({ brand: settings.brand }),
      CredentialLookup.layer,
      ShutdownSignal.layer,
      Devices.layer,
      EventTails.layer,
      Exports.layer,
      IdempotencyRecords.layer,
      Orgs.layer,
      LimitUses.layer({ ...settings, tunnelTransfer: settings.limits.tunnel_transfer }),
      OrgLimits.layer(settings.limits),
      Grants.layer,
      GrantTokens.layer,
      Verifications.layer,
      OAuthClients.layer.pipe(Layer.provide(PublicLimits.layer(settings.limits))),
      OAuthRequests.layer,
      PublicLimits.layer(settings.limits),
      ServiceKey.layer,
      StandingCredentials.layer,
      StreamLimits.layer(settings.limits),
      Attachments.layer,
      PageViews.layer({ hosts: hostsOf(settings), ceiling: settings.pageViewCeiling }),
      Accounts.layer({
        registration: settings.signup,
        inviteCodes: settings.inviteCodes,
        tosVersion: settings.tosVersion,
        tosEffectiveAt: Option.getOrNull(settings.tosEffectiveAt),
      }),
    ]),
    Layer.provide(AuditQueries.layer.pipe(Layer.provide(ServiceKey.layer))),
    Layer.provide(RefusedCredentials.layer),
    Layer.provide(Audit.layer({ addresses: settings.auditAddresses })),
    Layer.provide(Sending.layer.pipe(Layer.provide([Stores.layer, Identities.layer, Composition.layer]))),
    Layer.provide([Stores.layer, Identities.layer, Orgs.layer, Connectors.layer]),
    Layer.provide(outgoing),
    Layer.provide(NodeHttpServer.layerHttpServices),
  )
