/**
 * The whole service in this process, as `svc serve` assembles it, on free ports and a private database.
 *
 * Test a promise at its own level, with the least that can break it. From least to most:
 *
 * 1. A rule without a store (a parser, a table, a policy): the module itself. For public connections, `RecordedContext`
 *    takes bytes and returns a record of the actions.
 * 2. Statements and in-process calls (accounts, devices, records, lists): `databaseLayer` of `Database`, or
 *    `storesLayer` of `Stores`, which contains all stores.
 * 3. Actors and their background work (workflows, deliveries, exports, leases, limits across processes): `actors` of
 *    `Actors`. Another process is another `Layer.build(Layer.fresh(…))` over the same store.
 * 4. HTTP, MCP, SMTP, pages and tunnels (headers, problems, conversations): `sharedService` of this module, or
 *    `startService` for other settings and whatever concerns the whole service, with `Client`, `Mail`, `Public` or
 *    `Browser` as the peer.
 * 5. Several processes (roles, kills, a hand-over): `deploy` of `Deployment`.
 *
 * The second and third kind run with `it.effect` of `@effect/vitest` on the test's clock, so a day costs nothing:
 * advance it with `TestClock`, wait for the store with `waitUntil`, and never sleep. Peers outside the service are real:
 * `Receiver` for Webhooks, `Relay` for system mail. `Report` is not for tests: it prints the results of benchmarks and
 * fault rows.
 */
import * as os from "node:os"
import * as path from "node:path"
import { roles } from "@svc/cli/serve/Roles"
import { type Parts, realParts } from "@svc/cli/serve/Parts"
import * as Serve from "@svc/cli/serve/Serve"
import { load } from "@svc/cli/serve/Settings"
import { current } from "../../packages/cli/src/Bundle.mjs"
import * as Stores from "@svc/cluster/store/Database"
import { type DatedVersion, Versions } from "@svc/domain/Versions"
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { BundledThreads } from "@svc/mail-gateway/mail/ThreadEntry"
import { ConfigProvider, Effect, identity, Layer, References, Scope } from "effect"
import { freePort, portRange } from "./Ports.ts"
import { closeScope, makeDatabase } from "./Database.ts"
import { share } from "./Shared.ts"
import { unlimited } from "./Unlimited.ts"

/** Public DNS without any name, so that no test depends on the network. */
const noNames = Layer.succeed(Resolver, { lookup: () => Effect.fail(new LookupFailed({ code: "ENOTFOUND" })) })

/** The current bundle, as in processes of the service: its threads take a quarter of the time to start. */
const bundle = current()

export interface ServiceOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly parts?: Partial<Parts>
  /** Versions of the API in place of the served ones. */
  readonly versions?: ReadonlyArray<DatedVersion>
}

export const startService = async (options: ServiceOptions = {}) => {
  const database = await makeDatabase()
  const [httpPort, smtpPort, edgePort] = [await freePort(), await freePort(), await freePort()]
  const [imapPort, imapsPort] = [await freePort(), await freePort()]
  const [submissionPort, submissionsPort] = [await freePort(), await freePort()]
  const env = {
    SVC_HTTP_PORT: String(httpPort),
    SVC_SMTP_PORT: String(smtpPort),
    SVC_IMAP_PORT: String(imapPort),
    SVC_IMAPS_PORT: String(imapsPort),
    SVC_SUBMISSION_PORT: String(submissionPort),
    SVC_SUBMISSIONS_PORT: String(submissionsPort),
    SVC_EDGE_PORT: String(edgePort),
    SVC_EDGE_TCP_PORTS: portRange(),
    SVC_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    SVC_DATA_DIR: path.join(os.tmpdir(), "svc-test-unused"),
    ...unlimited,
    ...options.env,
  }
  const settings = await Effect.runPromise(
    load.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))),
  )
  const [serving, scope] = [Scope.makeUnsafe(), Scope.makeUnsafe()]
  const store = { connection: database.settings, place: "test", embeddedHome: undefined }
  const layer = Serve.layer(settings, store, new Set(roles), { ...realParts, resolver: noNames, ...options.parts })
  await Effect.runPromise(
    Layer.buildWithScope(layer, serving).pipe(
      Effect.provideService(References.MinimumLogLevel, "Error"),
      Effect.provideService(BundledThreads, bundle === undefined ? undefined : new URL(bundle)),
      options.versions === undefined ? identity : Effect.provideService(Versions, options.versions),
    ),
  )
  const stores = await Effect.runPromise(Layer.buildWithScope(Layer.fresh(Stores.layer(database.settings)), scope))
  return {
    base: settings.baseUrl,
    httpPort,
    smtpPort,
    imapPort,
    imapsPort,
    submissionPort,
    submissionsPort,
    edgePort,
    /** Queries the store for state that the interface does not show. */
    query: <A extends object>(run: (sql: Stores.Writes["Service"]) => Effect.Effect<ReadonlyArray<A>, unknown>) =>
      Effect.runPromise(
        Effect.flatMap(Effect.service(Stores.Writes), (sql) => run(sql)).pipe(
          Effect.provideContext(stores),
          Effect.orDie,
        ),
      ),
    /** Stops the service as SIGTERM does; its store can still be queried. */
    leave: () => closeScope(serving),
    stop: async () => {
      await closeScope(serving)
      await closeScope(scope)
      await database.drop()
    },
  }
}

/** A service that a test file started for itself, and stops. */
export type OwnService = Awaited<ReturnType<typeof startService>>

export type TestService = Omit<OwnService, "stop" | "leave">

/**
 * Returns the service that all files of this worker share if they need only accounts of their own: a start and a stop
 * cost 0.8 s of CPU. It is stopped before a file that does not use it. A file that uses it must not replace timers, and
 * finds rows of other files in the store.
 */
export const sharedService = (): Promise<TestService> => share("service", startService)

export { eventually } from "./Eventually.ts"
