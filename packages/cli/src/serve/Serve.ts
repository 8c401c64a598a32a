/**
 * The one place where the service is put together. A process plays every role by default, or the ones it is given;
 * the same layers serve both, only the set differs.
 */
import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import * as Http from "@svc/api/Http"
import * as Cluster from "@svc/cluster/Cluster"
import { Accounts } from "@svc/cluster/account/Accounts"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Devices } from "@svc/cluster/account/Devices"
import { Exports } from "@svc/cluster/account/Exports"
import * as OrgActor from "@svc/cluster/account/OrgActor"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Postman } from "@svc/cluster/account/Postman"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { HandleRules } from "@svc/cluster/handles/HandleRules"
import { check, Health, pass } from "@svc/cluster/health/Health"
import { Identities } from "@svc/cluster/identity/Ask"
import * as IdentityActor from "@svc/cluster/identity/IdentityActor"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import * as Overdue from "@svc/cluster/identity/Overdue"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { IdempotencyRecords } from "@svc/cluster/idempotency/IdempotencyRecords"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import * as SystemMailForwarding from "@svc/cluster/mail/SystemMailForwarding"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { PageViews } from "@svc/cluster/pages/PageViews"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import * as Database from "@svc/cluster/store/Database"
import * as Housekeeping from "@svc/cluster/store/Housekeeping"
import * as Migrations from "@svc/cluster/store/Migrations"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import * as TunnelPorts from "@svc/cluster/tunnel/TunnelPorts"
import { Vault } from "@svc/cluster/vault/Vault"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Addresses } from "@svc/domain/Addresses"
import * as Relay from "@svc/mail-gateway/account/Relay"
import * as Attachments from "@svc/mail-gateway/mail/Attachments"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import * as Edge from "@svc/tunnel-edge/edge/Edge"
import { Effect, Layer, Option } from "effect"
import * as MasterKey from "./MasterKey.ts"
import type { Settings } from "./Settings.ts"
import * as Store from "./Store.ts"

export const roles = ["api", "actors", "mail", "edge"] as const
export type Role = (typeof roles)[number]

const addresses = (settings: Settings) =>
  Layer.succeed(Addresses, {
    environment: settings.environment,
    baseUrl: settings.baseUrl,
    profileBase: settings.profileBase,
    mailDomain: settings.mailDomain,
    tunnelDomain: settings.tunnelDomain,
    tunnelScheme: settings.environment === "development" ? "http" : "https",
    tunnelPort: settings.environment === "development" ? settings.edgePort : undefined,
    imap: {
      host: settings.environment === "development" ? "localhost" : settings.mailDomain,
      port: settings.imapPort,
      security: settings.environment === "development" ? "starttls" : "tls",
    },
  })

const databaseHealth = check(
  "database",
  true,
  Effect.gen(function* () {
    const sql = yield* Database.Reads
    yield* sql`select 1`
    return pass
  }),
)

/** What every role stands on: the store, migrated and proven to be ours. */
const foundation = (settings: Settings, connection: Database.ConnectionSettings) =>
  Layer.mergeAll(Migrations.layer, databaseHealth).pipe(
    Layer.provideMerge(Database.layer(connection)),
    (store) => MasterKey.guard.pipe(Layer.provideMerge(store)),
    Layer.provideMerge(Layer.mergeAll(MasterKey.layer(settings), addresses(settings), Health.layer)),
  )

/** What is read and written without an actor. */
const stores = Layer.mergeAll(
  IdentityQueries.layer,
  CardQueries.layer,
  EventQueries.layer,
  WebhookQueries.layer,
  MessageQueries.layer,
  MailSettingsQueries.layer,
  ApiKeys.layer,
  Vault.layer,
  TunnelQueries.layer,
)

const guardedClient = (settings: Settings) =>
  GuardedClient.layer({ allowPrivate: settings.environment === "development" })

const actors = (settings: Settings, parts: Parts) =>
  Layer.mergeAll(
    IdentityActor.layer({ identityQuota: settings.identityQuota, mailboxBytes: settings.mailboxBytes }),
    OrgActor.layer(settings.limits).pipe(Layer.provide([stores, Identities.layer])),
    Overdue.layer,
    Housekeeping.layer,
    TunnelPorts.layer(settings.tunnelPorts),
    Option.match(settings.postmasterTo, {
      onNone: () => Layer.empty,
      onSome: (to) => SystemMailForwarding.layer({ to }).pipe(Layer.provide(postman(settings))),
    }),
  ).pipe(Layer.provide([parts.provisioningSteps({ tunnelPorts: settings.tunnelPorts }), Deliveries.layer]))

/** Sites whose page views are counted. */
const hostsOf = (settings: Settings) =>
  new Set([settings.baseUrl, settings.profileBase].map((url) => new URL(url).hostname))

const api = (settings: Settings) =>
  Http.layer({ contactTo: settings.contactTo, trustedProxies: settings.trustedProxies }).pipe(
    Layer.provide([
      HandleRules.layer({ brand: settings.brand }),
      CredentialLookup.layer,
      Devices.layer,
      Exports.layer,
      IdempotencyRecords.layer,
      OrgActor.Orgs.layer,
      OrgLimits.layer(settings.limits),
      PublicLimits.layer(settings.limits),
      ServiceKey.layer,
      Attachments.layer,
      PageViews.layer({ hosts: hostsOf(settings), ceiling: settings.pageViewCeiling }),
      Accounts.layer({
        registration: settings.signup,
        inviteCodes: settings.inviteCodes,
        tosVersion: settings.tosVersion,
        tosEffectiveAt: Option.getOrNull(settings.tosEffectiveAt),
      }),
    ]),
    Layer.provide([stores, Identities.layer, OrgActor.Orgs.layer]),
    Layer.provide(postman(settings)),
    Layer.provide(NodeHttpServer.layer(createServer, { host: settings.host, port: settings.httpPort })),
  )

/** In Development without a relay the answer carries the sign-in link; production has a relay. */
const postman = (settings: Settings) =>
  Option.match(settings.relayUrl, {
    onNone: () => Postman.none,
    onSome: (url) => Relay.layer({ url, from: settings.systemFrom }),
  })

const mail = (settings: Settings, parts: Parts) =>
  Smtp.layer({
    host: settings.host,
    port: settings.smtpPort,
    mailDomain: settings.mailDomain,
    maxBytes: settings.messageBytes,
    tls: Option.getOrUndefined(settings.smtpTls),
  }).pipe(
    Layer.provide(
      Layer.mergeAll(Reception.layer({ mailboxBytes: settings.mailboxBytes }), SystemMail.layer, parts.resolver),
    ),
    Layer.provide(Identities.layer),
  )

const edge = (settings: Settings) =>
  Edge.layer({
    host: settings.host,
    port: settings.edgePort,
    address: Option.getOrUndefined(settings.edgeAddress),
    tls: Option.getOrUndefined(settings.edgeTls),
  }).pipe(
    Layer.provide([
      CredentialLookup.layer,
      TunnelLinks.layer,
      TunnelQueries.layer,
      TunnelUsage.layer,
      Identities.layer,
      OrgActor.Orgs.layer,
    ]),
  )

const cluster = (settings: Settings, carriesActors: boolean) => {
  const tls = Option.getOrUndefined(settings.runnerTls)
  return carriesActors
    ? Cluster.runner({ host: settings.runnerHost, port: settings.runnerPort, tls })
    : Cluster.gateway(tls)
}

/** What tests put in the place of the world outside: public DNS, and the work of saga steps. */
export interface Parts {
  readonly resolver: Layer.Layer<Resolver>
  readonly provisioningSteps: typeof ProvisioningSteps.layer
}

export const realParts: Parts = { resolver: Resolver.layer, provisioningSteps: ProvisioningSteps.layer }

/** The service in the given roles, over the given store. */
export const layer = (settings: Settings, store: Store.Store, wanted: ReadonlySet<Role>, parts: Parts = realParts) =>
  Layer.mergeAll(
    wanted.has("actors") ? actors(settings, parts) : Layer.empty,
    wanted.has("api") ? api(settings) : Layer.empty,
    wanted.has("mail") ? mail(settings, parts) : Layer.empty,
    wanted.has("edge") ? edge(settings) : Layer.empty,
    Store.diskHealth(store),
  ).pipe(
    Layer.provide(Layer.merge(cluster(settings, wanted.has("actors")), guardedClient(settings))),
    Layer.provide(foundation(settings, store.connection)),
  )
