/** Role `actors`: a runner of the cluster, and the singletons that run in one of these processes. */
import * as OrgActor from "@svc/cluster/capabilities/OrgActor"
import { Orgs } from "@svc/cluster/account/Orgs"
import * as ConnectorActor from "@svc/cluster/connectors/ConnectorActor"
import * as AuditPartitions from "@svc/cluster/audit/AuditPartitions"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { Platforms } from "@svc/cluster/connectors/platforms/Platforms"
import { Identities } from "@svc/cluster/actor/Identities"
import * as IdentityActor from "@svc/cluster/capabilities/IdentityActor"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import { SendingGate } from "@svc/cluster/mail/sending/outbox/SendingGate"
import * as SegmentBuilder from "@svc/cluster/mail/search/SegmentBuilder"
import { releaseHeldMail } from "@svc/cluster/mail/sending/outbox/OutboxQueue"
import * as SystemMailForwarding from "@svc/cluster/mail/SystemMailForwarding"
import * as Housekeeping from "@svc/cluster/housekeeping/Housekeeping"
import * as GrantNotices from "@svc/cluster/oauth/GrantNotices"
import * as Horizon from "@svc/cluster/store/Horizon"
import * as StoreMetrics from "@svc/cluster/store/StoreMetrics"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import * as TunnelPorts from "@svc/cluster/tunnel/TunnelPorts"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import * as InternalDelivery from "@svc/mail-gateway/mail/sending/InternalDelivery"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { Layer, Option } from "effect"
import type { Parts } from "../Parts.ts"
import type { Settings } from "../Settings.ts"
import type { Outgoing } from "./Outgoing.ts"
import * as Stores from "./Stores.ts"

/** Mail between Identities needs no outgoing transport. */
const inside = (settings: Settings) =>
  InternalDelivery.layer({ mailDomain: settings.mailDomain }).pipe(
    Layer.provide([Reception.layer({ mailboxBytes: settings.mailboxBytes }), SystemMail.layer]),
  )

export const layer = (settings: Settings, parts: Parts, outgoing: Outgoing) =>
  Layer.mergeAll(
    IdentityActor.layer({
      identityQuota: settings.identityQuota,
      mailboxBytes: settings.mailboxBytes,
      mailHourly: settings.mailHourly,
      tunnelPorts: settings.tunnelPorts,
    }),
    OrgActor.layer(settings.limits).pipe(Layer.provide([Stores.layer, ServiceKey.layer])),
    ConnectorActor.layer.pipe(Layer.provide(Platforms.layer(settings.connectors)), Layer.provide(ServiceKey.layer)),
    Overdue.layer(IdentityActor.watched),
    Overdue.layer(OrgActor.watched),
    Overdue.layer(ConnectorWork.watched),
    Housekeeping.layer,
    SegmentBuilder.layer,
    GrantNotices.layer,
    AuditPartitions.layer({ days: settings.auditDays }),
    AuditPartitions.health,
    // An operator's own database has its own monitoring.
    Option.isNone(settings.databaseUrl) ? StoreMetrics.layer : Layer.empty,
    Horizon.layer,
    releaseHeldMail,
    TunnelPorts.layer(settings.tunnelPorts),
    Option.match(settings.postmasterTo, {
      onNone: () => Layer.empty,
      onSome: (to) => SystemMailForwarding.layer({ to }),
    }),
  ).pipe(
    Layer.provide([
      parts.provisioningSteps({ tunnelPorts: settings.tunnelPorts }),
      Deliveries.layer,
      Outbox.layer,
      SendingGate.layer,
      inside(settings),
    ]),
    Layer.provide([Identities.layer, Orgs.layer, Connectors.layer, outgoing]),
  )
