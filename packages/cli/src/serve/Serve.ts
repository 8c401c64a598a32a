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
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Postman } from "@svc/cluster/account/Postman"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { HandleRules } from "@svc/cluster/handles/HandleRules"
import { check, Health, pass } from "@svc/cluster/health/Health"
import { Identities } from "@svc/cluster/identity/Ask"
import * as IdentityActor from "@svc/cluster/identity/IdentityActor"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import * as Overdue from "@svc/cluster/identity/Overdue"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import * as Database from "@svc/cluster/store/Database"
import * as Migrations from "@svc/cluster/store/Migrations"
import * as TunnelPorts from "@svc/cluster/tunnel/TunnelPorts"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Addresses } from "@svc/domain/Addresses"
import { Effect, Layer, Option } from "effect"
import * as MasterKey from "./MasterKey.ts"
import type { Settings } from "./Settings.ts"
import * as Store from "./Store.ts"

export const roles = ["api", "actors", "mail"] as const
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

const queries = (settings: Settings) =>
  HandleRules.layer({ brand: settings.brand }).pipe(
    Layer.provideMerge(Layer.mergeAll(IdentityQueries.layer, EventQueries.layer, WebhookQueries.layer, MessageQueries.layer)),
  )

const guardedClient = (settings: Settings) => GuardedClient.layer({ allowPrivate: settings.environment === "development" })

const actors = (settings: Settings) =>
  Layer.mergeAll(
    IdentityActor.layer({ identityQuota: settings.identityQuota, mailboxBytes: settings.mailboxBytes }),
    Overdue.layer,
    TunnelPorts.layer(settings.tunnelPorts),
  ).pipe(Layer.provide(ProvisioningSteps.layer({ tunnelPorts: settings.tunnelPorts })))

const api = (settings: Settings) =>
  Http.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        queries(settings),
        CredentialLookup.layer,
        ApiKeys.layer,
        Identities.layer,
        Accounts.layer({
          registration: settings.signup,
          inviteCodes: settings.inviteCodes,
          tosVersion: settings.tosVersion,
          tosEffectiveAt: Option.getOrNull(settings.tosEffectiveAt),
        }),
      ),
    ),
    Layer.provide(Postman.none),
    Layer.provide(NodeHttpServer.layer(createServer, { host: settings.host, port: settings.httpPort })),
  )

const cluster = (settings: Settings, carriesActors: boolean) => {
  const tls = Option.getOrUndefined(settings.runnerTls)
  return carriesActors
    ? Cluster.runner({ host: settings.runnerHost, port: settings.runnerPort, tls })
    : Cluster.gateway(tls)
}

/** The service in the given roles, over the given store. */
export const layer = (settings: Settings, store: Store.Store, wanted: ReadonlySet<Role>) =>
  Layer.mergeAll(
    wanted.has("actors") ? actors(settings) : Layer.empty,
    wanted.has("api") ? api(settings) : Layer.empty,
    Store.diskHealth(store),
  ).pipe(
    Layer.provide(Layer.merge(cluster(settings, wanted.has("actors")), guardedClient(settings))),
    Layer.provide(foundation(settings, store.connection)),
  )
