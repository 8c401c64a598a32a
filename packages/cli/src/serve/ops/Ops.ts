/**
 * The operations port of every role: `/livez` (the event loop runs), `/readyz` (the process accepts work) and
 * `/metrics`. It opens before the store and closes after everything else. It reveals no secrets but is meant for
 * operators only, so it listens on loopback by default.
 */
import { createServer, type ServerResponse } from "node:http"
import { runAll } from "@svc/cluster/observe/Collectors"
import * as Metrics from "@svc/cluster/observe/Metrics"
import * as ProcessMetrics from "@svc/cluster/observe/ProcessMetrics"
import { Effect, FiberSet, Layer } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { SettingsInvalid } from "../Settings.ts"
import type { Readiness } from "./Readiness.ts"

export interface OpsSettings {
  readonly host: string
  /** 0 selects a free port; undefined the usual port if it is free. */
  readonly port: number | undefined
}

/** The default port. Several processes on one machine need different ports. */
export const usualPort = 9090

const isReady = Metrics.gauge("svc_ready", "1 while the process accepts work", [])

interface OpsResponse {
  readonly status: number
  readonly type: string
  readonly body: string
}

const json = (status: number, body: object): OpsResponse => ({
  status,
  type: "application/json",
  body: `${JSON.stringify(body)}\n`,
})

const ready = (readiness: Readiness) =>
  Effect.gen(function* () {
    const state = readiness.state()
    const report = readiness.report()
    if (state !== "ready" || report === undefined) return json(503, { status: state })
    const { status, components } = yield* report
    const ailing = components.filter((component) => component.status !== "pass")
    return json(status === "fail" ? 503 : 200, {
      status: status === "fail" ? "failing" : "ready",
      components: ailing.map(({ name, status: of, detail }) => ({ name, status: of, detail })),
    })
  })

/** Descriptions of metric families that the cluster library leaves undescribed. */
const help: Readonly<Record<string, string>> = {
  effect_cluster_entities: "Actors in memory, by kind",
  effect_cluster_entity_mailbox_size_max: "Most messages waiting for one actor, by kind",
  effect_cluster_runners: "Processes that run actors",
  effect_cluster_runners_healthy: "Healthy processes that run actors",
  effect_cluster_shards: "Shards of this process",
  effect_cluster_shards_releasing: "Shards that this process is releasing",
  effect_cluster_singletons: "Singletons that run in this process",
}

/** Adds missing descriptions. Prometheus rejects a scrape with two descriptions of a family. */
export const described = (text: string): string =>
  text.replace(/^(# HELP .*\n)?# TYPE (\w+) /gm, (lines, description: string | undefined, name: string) =>
    description !== undefined || help[name] === undefined ? lines : `# HELP ${name} ${help[name]}\n${lines}`,
  )

const metrics = Effect.andThen(
  runAll,
  Effect.map(PrometheusMetrics.format(), (text): OpsResponse => ({
    status: 200,
    type: "text/plain; version=0.0.4; charset=utf-8",
    body: described(text),
  })),
)

const send = (response: ServerResponse, { status, type, body }: OpsResponse): void => {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" })
  response.end(body)
}

const listen = Effect.fnUntraced(function* (settings: OpsSettings, readiness: Readiness) {
  const run = yield* FiberSet.makeRuntimePromise()
  const pages: Readonly<Record<string, Effect.Effect<OpsResponse>>> = {
    "/livez": Effect.succeed(json(200, { status: "alive" })),
    "/readyz": ready(readiness),
    "/metrics": metrics,
  }
  const server = createServer((request, response) => {
    const page = pages[request.url?.split("?")[0] ?? ""]
    if (page === undefined) return send(response, json(404, { status: "not found", pages: Object.keys(pages) }))
    if (request.method !== "GET" && request.method !== "HEAD") return send(response, json(405, { status: "GET only" }))
    run(page).then(
      (answer) => send(response, answer),
      () => response.destroy(),
    )
  })
  yield* Effect.acquireRelease(
    Effect.callback<void, Error>((resume) => {
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(settings.port ?? usualPort, settings.host, () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : usualPort
})

/** Opens the port until the scope closes. Returns its address, or undefined if another process has the usual port. */
export const open = Effect.fnUntraced(function* (
  settings: OpsSettings,
  roles: ReadonlyArray<string>,
  readiness: Readiness,
) {
  yield* Layer.build(ProcessMetrics.layer(roles))
  yield* isReady.scoped([], () => (readiness.state() === "ready" ? 1 : 0))
  const port = settings.port ?? usualPort
  return yield* listen(settings, readiness).pipe(
    Effect.map((bound): string | undefined => `${settings.host}:${bound}`),
    Effect.catch((error) =>
      settings.port === undefined && "code" in error && error.code === "EADDRINUSE"
        ? Effect.as(
            Effect.logWarning(
              `Port ${port} is in use, so this process has no probes and no metrics. Set SVC_OPS_PORT.`,
            ),
            undefined,
          )
        : Effect.fail(
            new SettingsInvalid({
              message: `${settings.host}:${port} cannot be opened (${error.message}): set SVC_OPS_PORT or SVC_OPS_HOST.`,
            }),
          ),
    ),
  )
})
