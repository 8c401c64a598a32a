/**
 * Assembles the service. A process has all roles by default, or the given ones; the same layers serve both cases. Roles
 * that are not used are not loaded.
 */
import * as Cluster from "@svc/cluster/Cluster"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { check, Health, pass } from "@svc/cluster/health/Health"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import * as Database from "@svc/cluster/store/Database"
import * as Migrations from "@svc/cluster/store/Migrations"
import * as StoreClock from "@svc/cluster/store/StoreClock"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { Addresses, type MailServer } from "@svc/domain/Addresses"
import { Effect, Layer, Option } from "effect"
import * as Readiness from "./ops/Readiness.ts"
import * as MasterKey from "./MasterKey.ts"
import { type Parts, realParts } from "./Parts.ts"
import type { Role } from "./Roles.ts"
import type { Settings } from "./Settings.ts"
import * as Store from "./Store.ts"

/** The mail server shown to mail programs: implicit TLS, except in Development, whose certificate is not trusted. */
const mailServer = ({ environment, imapHost, mailDomain }: Settings, port: number, tlsPort: number): MailServer => {
  const isDevelopment = environment === "development"
  return {
    host: Option.getOrElse(imapHost, () => (isDevelopment ? "localhost" : mailDomain)),
    port: isDevelopment ? port : tlsPort,
    security: isDevelopment ? "starttls" : "tls",
  }
}

/** The public addresses of the service. */
export const addresses = (settings: Settings) =>
  Layer.succeed(Addresses, {
    environment: settings.environment,
    baseUrl: settings.baseUrl,
    profileBase: settings.profileBase,
    mailDomain: settings.mailDomain,
    tunnelDomain: settings.tunnelDomain,
    tunnelScheme: settings.environment === "development" ? "http" : "https",
    tunnelPort: settings.environment === "development" ? settings.edgePort : undefined,
    mcpOrigins: settings.mcpOrigins,
    imap: mailServer(settings, settings.imapPort, settings.imapsPort),
    submission: mailServer(settings, settings.submissionPort, settings.submissionsPort),
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

/** The store's clock, with the layers of the foundation that read the time: a layer beside it would get the clock of the process. */
export const timed = Layer.mergeAll(ChangeFeed.layer, UsageCounters.layer).pipe(Layer.provideMerge(StoreClock.layer))

/** The layers that every role needs: the migrated store, with its master key verified. */
const foundation = (settings: Settings, connection: Database.ConnectionSettings) =>
  Layer.mergeAll(Migrations.layer, databaseHealth, timed).pipe(
    Layer.provideMerge(Database.layer(connection)),
    (store) => MasterKey.guard.pipe(Layer.provideMerge(MasterKey.layer(settings)), Layer.provideMerge(store)),
    Layer.provideMerge(Layer.mergeAll(addresses(settings), Health.layer)),
  )

const guardedClient = (settings: Settings) =>
  GuardedClient.layer({ allowPrivate: settings.environment === "development" })

const cluster = (settings: Settings, carriesActors: boolean) => {
  const tls = Option.getOrUndefined(settings.runnerTls)
  return carriesActors
    ? Cluster.runner({ host: settings.runnerHost, port: settings.runnerPort, tls })
    : Cluster.gateway(tls)
}

/** Returns the layer of a role, loaded on demand. */
const role = <Needs, E, R>(wanted: boolean, load: () => Promise<Layer.Layer<Needs, E, R>>) =>
  wanted ? Layer.unwrap(Effect.promise(load)) : Layer.empty

/** The service in the given roles, over the given store. */
export const layer = (
  settings: Settings,
  store: Store.Store,
  wanted: ReadonlySet<Role>,
  parts: Parts = realParts,
  readiness: Readiness.Readiness = Readiness.make(),
) =>
  Readiness.announced(readiness, settings.shutdownDelay * 1000).pipe(
    Layer.provide(played(settings, store, wanted, parts)),
    Layer.provide(foundation(settings, store.connection)),
  )

const played = (settings: Settings, store: Store.Store, wanted: ReadonlySet<Role>, parts: Parts) => {
  // All roles share one instance and its connections.
  const outgoing = Layer.unwrap(
    Effect.promise(async () => (await import("./roles/Outgoing.ts")).layer(settings, parts)),
  )
  return Layer.mergeAll(
    role(wanted.has("actors"), async () => (await import("./roles/Actors.ts")).layer(settings, parts, outgoing)),
    role(wanted.has("api"), async () => (await import("./roles/Api.ts")).layer(settings, outgoing)),
    role(wanted.has("mail"), async () => (await import("./roles/Mail.ts")).layer(settings, parts)),
    role(wanted.has("edge"), async () => (await import("./roles/Edge.ts")).layer(settings, wanted.size === 1)),
    Store.diskHealth(store),
  ).pipe(Layer.provide(Layer.merge(cluster(settings, wanted.has("actors")), guardedClient(settings))))
}
