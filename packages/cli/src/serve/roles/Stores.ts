/**
 * The queries of all capabilities. The list is separate from the capabilities' records because gateways load no actor; it
 * does not compile without one of the records' `queries`.
 */
import type { Queries } from "@svc/cluster/capabilities/Capabilities"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { ThreadQueries } from "@svc/cluster/mail/ThreadQueries"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { SendingQueries } from "@svc/cluster/mail/sending/SendingQueries"
import { IdentityTokens } from "@svc/cluster/proof/IdentityTokens"
import { IssuerKeys } from "@svc/cluster/proof/IssuerKeys"
import { RequestSignatures } from "@svc/cluster/proof/RequestSignatures"
import { SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { SignIns } from "@svc/cluster/proof/SignIns"
import { SignInTokens } from "@svc/cluster/proof/SignInTokens"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { OverviewQueries } from "@svc/cluster/account/OverviewQueries"
import { UsageQueries } from "@svc/cluster/usage/UsageQueries"
import { Vault } from "@svc/cluster/vault/Vault"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Layer } from "effect"

export const layer = Layer.mergeAll(
  IdentityQueries.layer,
  CardQueries.layer,
  ConnectorQueries.layer,
  EventQueries.layer,
  WebhookQueries.layer,
  MessageQueries.layer,
  ThreadQueries.layer,
  MailSettingsQueries.layer,
  SendingQueries.layer,
  Drafts.layer,
  ApiKeys.layer,
  Vault.layer,
  TunnelQueries.layer,
  SigningKeys.layer,
  IssuerKeys.layer,
  UsageQueries.layer,
  OverviewQueries.layer,
  IdentityTokens.layer,
  RequestSignatures.layer,
  SignIns.layer,
  SignInTokens.layer,
) satisfies Layer.Layer<Queries, unknown, unknown>
