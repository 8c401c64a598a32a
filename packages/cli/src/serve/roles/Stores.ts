/** What more than one role reads and writes without an actor, and how it reaches the world. */
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Vault } from "@svc/cluster/vault/Vault"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import * as RelayMailer from "@svc/mail-gateway/mail/RelayMailer"
import { Layer, Option } from "effect"
import type { Settings } from "../Settings.ts"

export const layer = Layer.mergeAll(
  IdentityQueries.layer,
  CardQueries.layer,
  ConnectorQueries.layer,
  EventQueries.layer,
  WebhookQueries.layer,
  MessageQueries.layer,
  MailSettingsQueries.layer,
  ApiKeys.layer,
  Vault.layer,
  TunnelQueries.layer,
)

/** In Development without a relay the answer carries the sign-in link; production has a relay. */
export const mailer = (settings: Settings) =>
  Option.match(settings.relayUrl, {
    onNone: () => SystemMailer.none,
    onSome: (url) =>
      RelayMailer.layer({
        url,
        from: settings.systemFrom,
        arc: Option.getOrUndefined(
          Option.map(settings.arcKey, (key) => ({ key, domain: settings.mailDomain, selector: settings.arcSelector })),
        ),
      }),
  })
